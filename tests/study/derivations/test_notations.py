"""One tree, three notations: golden lines, and that pages and LaTeX are well formed."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lattend as lt
from lattend.counts.terms.notations import LATEX, MATHML, PLAIN
from lattend.counts.terms.term import Term, read_term
from lattend.study.derivations.draft import HOMES
from lattend.study.derivations.evaluation import evaluate
from lattend.study.exact.numbers import exact

GOLDEN = [
    ("sum(t + 1, i, t + 2, n)", "Σ_{i=t+2}^n (t + 1)", r"\sum_{i = t + 2}^{n} (t + 1)"),
    ("(t + 1)(t + 2)/2", "(t + 1)(t + 2)/2", r"\frac{(t + 1) (t + 2)}{2}"),
    ("n t - t^2/2", "nt − t²/2", r"n t - \frac{t^{2}}{2}"),
    ("a - (b - c)", "a − (b − c)", "a - (b - c)"),
    ("a/(b c)", "a/(bc)", r"\frac{a}{b c}"),
    ("(a/b)^2", "(a/b)²", r"\left(\frac{a}{b}\right)^{2}"),
    ("softmax(Z[q] W_q W_k.T Z.T) Z W_v", "softmax(Z_q W_q W_kᵀ Zᵀ) Z W_v", None),
    (
        "-α (norm(δ - Δ)^2 - norm(Δ)^2)",
        "−α(‖δ − Δ‖² − ‖Δ‖²)",
        r"-\alpha (\|\delta - \Delta\|^{2} - \|\Delta\|^{2})",
    ),
    ("sum(q(z|x) log(p(x|z)), z)", "Σ_z q(z | x) log p(x | z)", r"\sum_{z} q (z \mid x) \log p (x \mid z)"),
    ("1/(1 + sum(exp(-α norm(j - k)^2), j != k))", "1/(1 + Σ_{j≠k} e^{−α‖j−k‖²})", None),
    ("sum(sum(a[k], k) W{h}, h)", "Σ_h (Σ_k a_k) W^(h)", r"\sum_{h} \left(\sum_{k} a_{k}\right) W^{(h)}"),
    ("W̃_k W_out", "W̃_k W_out", r"\tilde{W}_{k} W_{\mathrm{out}}"),
    ("((1, 2), (3, 4))", "[1 2; 3 4]", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}"),
    ("(n // w) w + (n % w)", "⌊n/w⌋ w + n mod w", r"\left\lfloor \frac{n}{w} \right\rfloor w + n \bmod w"),
]


@pytest.mark.parametrize(("source", "plain", "latex"), GOLDEN)
def test_golden(source: str, plain: str, latex: str | None) -> None:
    term = read_term(source, "pq")
    assert PLAIN.write(term) == plain
    assert latex is None or LATEX.write(term) == latex
    ElementTree.fromstring(f"<math>{MATHML.write(term)}</math>")


@pytest.mark.parametrize("name", HOMES)
def test_derivations_in_every_form(name: str) -> None:
    result = lt.study.derive(name)
    page = result.html().replace("&#x2062;", "")
    assert ElementTree.fromstring(page.replace("<br>", "<br/>")).find(".//math") is not None
    latex = result.latex()
    assert latex.count("{") == latex.count("}")
    assert latex.count(r"\left") - latex.count(r"\leftarrow") == latex.count(r"\right")
    assert latex[latex.index(r"\begin") :].isascii()  # pdflatex reads no other signs in formulas
    assert latex.count("&&") == len(result) + len(result.definitions)
    for width in (40, 60, 80):
        assert max(map(len, result.text(width).splitlines())) <= max(width, 72)
    assert len(result.json()["lines"]) == len(result)


def test_words_in_latex() -> None:
    """Signs that text fonts have other letters for, and those that LaTeX reads as its own."""
    latex = lt.study.derive("elbo").latex()
    assert r"\text{p(x, z) = p(z $\mid$ x) p(x)}" in latex
    assert r"for t $<$ n}" in lt.study.derive("strided").latex()
    assert r"\text{$\tilde{W}$\_k = I}" in lt.study.derive("quadratic").latex()


def terms() -> st.SearchStrategy[Term]:
    leaf = st.sampled_from("abc").map(lambda name: Term("name", text=name)) | st.integers(1, 9).map(
        lambda number: Term("number", text=str(number))
    )
    signs = st.sampled_from(["+", "-", "*", "/"])

    def joined(inner: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
        two = st.builds(lambda op, left, right: Term(op, (left, right)), signs, inner, inner)
        return two | inner.map(lambda term: Term("neg", (term,)))

    return st.recursive(leaf, joined, max_leaves=8)


@given(terms())
def test_what_is_printed_is_what_was_meant(term: Term) -> None:
    """The text, read again, has the same value: brackets are where they are needed."""
    names = {"a": exact("3/7"), "b": exact("5/2"), "c": exact("11/13")}
    printed = PLAIN.write(term).replace("−", "-").replace("·", "*")
    try:
        value = evaluate(term, names)
    except ZeroDivisionError:
        return
    assert evaluate(read_term(re.sub(r"(?<=[abc])(?=[abc])", " ", printed)), names) == value
