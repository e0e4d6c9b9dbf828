"""steer, try_query: the query for wanted weights, and the weights that a query gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from lattend.cli.steer import SteerCommand
from lattend.web.panel import Answer, AnswerPart, Panel, Question, Row, Rows, Snippets, Text
from lattend.web.snippets import command, literal, literals, show, snippets
from lattend.web.views import ReportView, report_view

if TYPE_CHECKING:
    from lattend.draw import Picture
    from lattend.study.steering.steer import Steered
    from lattend.study.steering.trial import Trial


class SteerQuestion(Question):
    """Keys [m, D] and wanted weights as parts of their sum; `sharpness` β, or "" for an error of 0.001."""

    keys: Rows
    wanted: Row
    values: Rows = Field(default_factory=list)
    scale: Text = "1"
    sharpness: Text = ""


class CertificateView(AnswerPart):
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


def answer_steer(question: SteerQuestion) -> SteerAnswer:
    """The query for the wanted weights, its exact error and bound, and why none is better."""
    from lattend.report.numbers import significant
    from lattend.study.steering.numbers import shares
    from lattend.study.steering.reports import steered_latex
    from lattend.study.steering.steer import plain

    result = steered(question)
    ray, why = result.ray, result.certificate
    query = plain(result.query)
    wanted = [str(share) for share in shares(question.wanted)]
    return SteerAnswer.view_of(
        result,
        report=report_view(result.report()),
        query=[significant(number, 12) for number in query.tolist()],
        place=query.tolist(),
        keys=ray.keys.tolist(),
        wanted=wanted,
        weights=plain(result.weights).tolist(),
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
        copies=_steer_copies(question, wanted, steered_latex(result)),
    )


def steered(question: SteerQuestion) -> Steered:
    """The library's result for one head."""
    from lattend.study.steering.numbers import shares
    from lattend.study.steering.steer import Steered, steer

    result = steer(
        question.keys,
        shares(question.wanted),
        sharpness=question.sharpness.strip() or None,
        values=question.values or None,
        scale=question.scale,
    )
    assert isinstance(result, Steered)
    return result


def _steer_copies(question: SteerQuestion, wanted: list[str], latex: str) -> Snippets:
    """The same question in Python and in the shell."""
    return snippets(
        show(
            "lt.study.steer",
            literals(question.keys),
            literals([wanted])[0],
            sharpness=literal(question.sharpness),
            values=literals(question.values) or None,
            scale=None if question.scale == "1" else literal(question.scale),
        ),
        command=command(SteerCommand, question, weights=wanted),
        latex=latex,
    )


def steer_picture(question: SteerQuestion) -> Picture:
    """The keys as a map, the weights and the error against the sharpness."""
    return steered(question).draw()


STEER = Panel("steer", "The query for wanted weights", answer_steer, steer_picture)


LENGTHS = [place / 10 for place in range(51)]  # of the query, 1 as given


class TryQueryQuestion(Question):
    """A query [D] over keys [m, D]. `wanted` are wished weights as parts of their sum; none, or one a key."""

    keys: Rows
    query: Row
    wanted: Row = Field(default_factory=list)
    values: Rows = Field(default_factory=list)
    scale: Text = "1"


class KeyWeight(AnswerPart):
    """What one key gets: in numbers, for bars, and in the limit of a long query in this direction."""

    logit: str
    weight: str
    share: float
    limit: float
    wanted: float


class ConeView(AnswerPart):
    """The directions from `start` to `end`, counter-clockwise, in which these keys win; all, where empty."""

    keys: list[int]
    start: list[float]
    end: list[float]


class Growth(AnswerPart):
    """The weights of each key, as the query is made shorter and longer; 1 is the query as given."""

    lengths: list[float]
    weights: list[list[float]]


class TryQueryAnswer(Answer):
    """`keys`, `values` and `query` are the numbers that were typed, for the plane."""

    keys: list[list[float]]
    values: list[list[float]]
    query: list[float]
    weights: list[KeyWeight]
    how: str
    report: ReportView
    output: list[float]
    wanted_output: list[float]
    cones: list[ConeView]
    growth: Growth


def answer_try_query(question: TryQueryQuestion) -> TryQueryAnswer:
    """The weights softmax(scale·Kq) and the output; for keys of two numbers the cone where each key wins."""
    from lattend.study.steering.pictures import winning_cones
    from lattend.study.steering.reports import six_digits, trial_latex, weight_texts

    trial = tried(question)
    rows = zip(trial.logits.tolist(), trial.weights.tolist(), trial.limit.tolist(), strict=True)
    texts = weight_texts(trial.logits, trial.weights)
    wanted = [0.0] * len(trial.keys) if trial.wanted is None else trial.wanted.tolist()
    report = trial.report()
    cones = winning_cones(question.keys, question.scale) if trial.keys.shape[1] == 2 else ()
    return TryQueryAnswer(
        keys=trial.keys.tolist(),
        values=[] if trial.values is None else trial.values.tolist(),
        query=trial.query.tolist(),
        weights=[
            KeyWeight(logit=six_digits(logit), weight=text, share=share, limit=limit, wanted=wish)
            for (logit, share, limit), wish, text in zip(rows, wanted, texts, strict=True)
        ],
        how=trial.how,
        report=report_view(report),
        output=[] if trial.output is None else trial.output.tolist(),
        wanted_output=[] if trial.wanted_output is None else trial.wanted_output.tolist(),
        cones=[ConeView.view_of(cone, start=cone.start or [], end=cone.end or []) for cone in cones],
        growth=Growth(lengths=LENGTHS, weights=trial.made_longer(LENGTHS).T.round(6).tolist()),
        copies=_try_query_copies(question, trial_latex(trial)),
    )


def tried(question: TryQueryQuestion) -> Trial:
    """The library's result for this query."""
    from lattend.study.steering.numbers import shares
    from lattend.study.steering.trial import try_query

    return try_query(
        question.keys,
        question.query,
        shares(question.wanted) if question.wanted else None,
        question.values or None,
        question.scale,
    )


def _try_query_copies(question: TryQueryQuestion, latex: str) -> Snippets:
    """The same question in Python and in the shell."""
    from lattend.study.steering.numbers import shares

    wanted = [str(share) for share in shares(question.wanted)] if question.wanted else []
    return snippets(
        show(
            "lt.study.try_query",
            literals(question.keys),
            literals([question.query])[0],
            weights=literals([wanted])[0] or None,
            values=literals(question.values) or None,
            scale=None if question.scale == "1" else literal(question.scale),
        ),
        command=command(SteerCommand, question, weights=wanted),
        latex=latex,
    )


def try_query_picture(question: TryQueryQuestion) -> Picture:
    """The keys as a map, and the weights against the query's length."""
    return tried(question).draw()


TRY_QUERY = Panel("try_query", "What a query returns", answer_try_query, try_query_picture)
