"""steer: the query that gives wanted weights, or the certificate that none does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, Field

from lattend.web.copies import command, python, show
from lattend.web.matrices import Row, Rows, Text, literal, literals, row_text, rows_text
from lattend.web.panel import Answer, Copies, Panel, Question
from lattend.web.reports import ReportView, view

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.study.steering.steered import Steered


class SteerQuestion(Question):
    """Keys [m, D] and wanted weights as parts of their sum; `sharpness` β, or "" for an error of 0.001."""

    keys: Rows
    wanted: Row
    values: Rows = Field(default_factory=list)
    scale: Text = "1"
    sharpness: Text = ""


class CertificateView(BaseModel):
    """Two mixtures of keys that are one point: `left` and `right` are the keys of either."""

    left: list[int]
    right: list[int]
    meeting: list[float]


class SteerAnswer(Answer):
    """How the weights are reached, "exactly", "in the limit" or "never"; `query` as texts, to be typed."""

    reach: str
    how: str
    report: ReportView
    query: list[str]
    place: list[float]
    keys: list[list[float]]
    wanted: list[str]
    weights: list[float]
    mixture: list[float]
    face: list[int]
    sharp: bool  # whether the sharpness matters
    certificate: CertificateView | None


def answer(question: SteerQuestion) -> SteerAnswer:
    """The query for the wanted weights, its exact error and bound, and why none is better."""
    from lattend.report.numbers import significant
    from lattend.study.steering.latex import steered_latex
    from lattend.study.steering.numbers import shares
    from lattend.study.steering.steered import plain

    found = steered(question)
    ray, why = found.ray, found.certificate
    query = plain(found.query)
    wanted = [str(share) for share in shares(question.wanted)]
    return SteerAnswer(
        reach=found.reach,
        how=found.how,
        report=view(found.report()),
        query=[significant(number, 12) for number in query.tolist()],
        place=query.tolist(),
        keys=ray.keys.tolist(),
        wanted=wanted,
        weights=plain(found.weights).tolist(),
        mixture=(ray.wanted @ ray.keys).tolist(),
        face=[key for key, on in enumerate(ray.face.tolist()) if on],
        sharp=not ray.face.all(),
        certificate=None
        if why is None
        else CertificateView(
            left=[key for key, part in enumerate(why.relation) if part < 0],
            right=[key for key, part in enumerate(why.relation) if part > 0],
            meeting=why.meeting(ray.keys).tolist(),
        ),
        copies=copies(question, wanted, steered_latex(found)),
    )


def steered(question: SteerQuestion) -> Steered:
    """What the library finds, for one head."""
    from lattend.study.steering.numbers import shares
    from lattend.study.steering.steer import steer
    from lattend.study.steering.steered import Steered

    found = steer(
        question.keys,
        shares(question.wanted),
        sharpness=question.sharpness.strip() or None,
        values=question.values or None,
        scale=question.scale,
    )
    assert isinstance(found, Steered)
    return found


def copies(question: SteerQuestion, wanted: list[str], latex: str) -> Copies:
    """The same question in Python and in the shell."""
    return Copies(
        python=python(
            show(
                "lt.study.steer",
                literals(question.keys),
                literals([wanted])[0],
                sharpness=literal(question.sharpness),
                values=literals(question.values) or None,
                scale=None if question.scale == "1" else literal(question.scale),
            )
        ),
        command=command(
            "steer",
            keys=rows_text(question.keys),
            weights=row_text(wanted),
            sharpness=question.sharpness,
            values=rows_text(question.values),
            scale="" if question.scale == "1" else question.scale,
        ),
        latex=latex,
    )


def picture(question: SteerQuestion) -> Picture:
    """The keys as a map, the weights and the error against the sharpness."""
    return steered(question).draw()


PANEL = Panel("steer", "The query for wanted weights", answer, picture)
