"""The terms of an exact evidence lower bound, as pages show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel

if TYPE_CHECKING:
    from lattend.study.generative.exact_bound import ExactBound


class BoundTerm(BaseModel):
    """reconstruction, kl, elbo, gap or log_prob: the formula, its decimals, and a number to draw."""

    name: str
    latex: str
    text: str
    value: float


class BoundView(BaseModel):
    """All terms, and whether ELBO + gap = log p(x) was proved for them."""

    terms: list[BoundTerm]
    proved: bool


def view(bound: ExactBound) -> BoundView:
    """The bound as typed data."""
    from lattend.study.exact.function import as_float
    from lattend.study.exact.writing import decimal, latex

    terms = [
        BoundTerm(
            name=name,
            latex=latex(term),
            text=decimal(term, 6).replace("-", "−"),
            value=as_float(term),
        )
        for name, term in bound.terms.items()
    ]
    return BoundView(terms=terms, proved=bound.proved)
