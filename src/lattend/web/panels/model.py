"""model: a whole model from its config.json: parameters, multiply-adds at a length, KV cache."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from lattend.cli.cost import CostCommand
from lattend.web.panel import Answer, AnswerPart, Integer, Panel, Question, Snippets
from lattend.web.snippets import call, command, show, snippets
from lattend.web.views import ReportView, report_view

if TYPE_CHECKING:
    from lattend.cost.models import Model, ModelWork


MOST_TOKENS = 10**8
MOST_CONFIG = 200_000  # characters
MATRICES = "all matrices together"


def _small(config: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(config)) > MOST_CONFIG:
        raise ValueError(f"a config.json of more than {MOST_CONFIG:,} characters is not read")
    return config


class ModelQuestion(Question):
    """The fields of a config.json, and how many sequences of how many tokens run through the model."""

    config: Annotated[dict[str, Any], AfterValidator(_small)]
    length: Annotated[Integer, Field(ge=1, le=MOST_TOKENS)] = 4096
    batch: Annotated[Integer, Field(ge=1, le=10**9)] = 1
    training: bool = False


class PartOfWork(AnswerPart):
    """One kind of part: its multiply-adds in three columns, and its share of those needed."""

    name: str
    needed: str
    executed: str
    dense: str
    share: float
    percent: str


class WorkCurve(AnswerPart):
    """The multiply-adds needed, or the bytes cached, as the length grows; `texts` are exact."""

    name: str
    values: list[float]
    texts: list[str]


class Passes(AnswerPart):
    """The length from which attention needs more than all matrices together, and its work there."""

    length: int
    value: float


class ModelTime(AnswerPart):
    """Lower bounds on a machine for the run and for one more token; "" where the model generates none."""

    machine: str
    about: str
    run: str
    run_binds: str
    token: str
    token_binds: str


class ModelAnswer(Answer):
    """The model, its work at the length asked for, and what becomes of it as the length grows."""

    title: str
    parameters: str
    active: str  # "" where one token uses all
    weights: str  # bytes at 2 a number
    cache: str  # bytes; "" where nothing is decoded
    multiply_adds: list[str]
    work_title: str
    parts: list[PartOfWork]
    formulas: ReportView
    times: list[ModelTime]
    about: ReportView
    lengths: list[int]
    curves: list[WorkCurve]
    cached: WorkCurve | None
    passes: Passes | None
    passes_text: str
    length: int
    longest: int | None
    fixed: bool  # an image model, whose length is set by the image
    config: dict[str, Any]  # the fields that were read


def answer_model(question: ModelQuestion) -> ModelAnswer:
    """The cost of a model, at a length and as the length grows."""
    from lattend.cost.models import config
    from lattend.cost.models.configuration import read_fields
    from lattend.cost.models.model import chart_lengths, passing_sentence
    from lattend.cost.models.summary import report_of
    from lattend.report.numbers import format_bytes, percent

    model = config(question.config)
    model.check_alone("the work at one length is")
    work = _work(model, question)
    total = work.multiply_adds
    formulas = model.formulas(training=question.training)
    lengths = [] if model.image else chart_lengths(model, question.length)
    passes = model.attention_passes()
    held = None if model.image or not model.is_causal else model.cache(question.length, question.batch)
    return ModelAnswer(
        title=model.heading,
        parameters=f"{model.parameters:,}",
        active=f"{model.active:,}" if model.is_mixture else "",
        weights=format_bytes(model.weights()),
        cache="" if held is None else format_bytes(held),
        multiply_adds=[f"{value:,}" for value in total],
        work_title=work.heading,
        parts=[
            PartOfWork(
                name=name,
                needed=f"{part.needed:,}",
                executed=f"{part.executed:,}",
                dense=f"{part.dense:,}",
                share=part.needed / total.needed if total.needed else 0.0,
                percent=percent(part.needed, total.needed),
            )
            for name, part in work.parts.items()
            if part.dense
        ],
        formulas=report_view(formulas),
        times=_times(work),
        about=report_view(report_of(model, usage=False)),  # the page has a slider for the length
        lengths=lengths,
        curves=_curves(model, question, lengths),
        cached=None if held is None else _cached(model, question, lengths),
        passes=None if passes is None else Passes(length=passes, value=_attention(model, question, passes)),
        passes_text=passing_sentence(model, passes),
        length=work.length,
        longest=model.longest,
        fixed=model.image is not None,
        config=read_fields(question.config),
        copies=_copies(question, model, "\n".join((work.report().latex(), formulas.latex()))),
    )


def _work(model: Model, question: ModelQuestion, length: int | None = None) -> ModelWork:
    tokens = None if model.image else length or question.length
    run = model.training if question.training else model.forward
    return run(tokens, batch=question.batch)


def _curves(model: Model, question: ModelQuestion, lengths: list[int]) -> list[WorkCurve]:
    """The work of each kind of part by length; kinds that need none are left out."""
    from lattend.cost.models.parts import ATTENTION

    parts_by_length = [_work(model, question, length).parts for length in lengths]
    names = [
        name for name in (parts_by_length[-1] if parts_by_length else {}) if parts_by_length[-1][name].needed
    ]
    needed = {name: [parts[name].needed for parts in parts_by_length] for name in names}
    matrices = [name for name in names if name != ATTENTION]
    needed |= (
        {MATRICES: [sum(parts[name].needed for name in matrices) for parts in parts_by_length]}
        if matrices
        else {}
    )
    return [
        WorkCurve(name=name, values=[float(v) for v in values], texts=[f"{v:,}" for v in values])
        for name, values in needed.items()
    ]


def _attention(model: Model, question: ModelQuestion, length: int) -> float:
    from lattend.cost.models.parts import ATTENTION

    return float(_work(model, question, length)[ATTENTION].needed)


def _cached(model: Model, question: ModelQuestion, lengths: list[int]) -> WorkCurve:
    from lattend.report.numbers import format_bytes

    held = [model.cache(length, question.batch) for length in lengths]
    return WorkCurve(name="KV cache", values=[float(v) for v in held], texts=[format_bytes(v) for v in held])


def _times(work: ModelWork) -> list[ModelTime]:
    from lattend.cost.models.serving_price import decode_time, generates, run_time
    from lattend.machines import compared_machines
    from lattend.report.numbers import seconds

    decodes = generates(work.model)
    times: list[ModelTime] = []
    for machine in compared_machines():
        run = run_time(work, machine)
        token = decode_time(work.model, work.length, work.batch, machine) if decodes else None
        times.append(
            ModelTime(
                machine=machine.name,
                about=machine.about,
                run=seconds(run.seconds),
                run_binds=run.binds,
                token="" if token is None else seconds(token.seconds),
                token_binds="" if token is None else token.binds,
            )
        )
    return times


def _copies(question: ModelQuestion, model: Model, latex: str) -> Snippets:
    length = None if model.image else question.length
    batch = question.batch if question.batch > 1 else None
    run = "training" if question.training else "forward"
    cache = [show("model.cache", question.length, batch=batch)] if model.is_causal and length else []
    return snippets(
        call("model = lt.cost.config", question.config),
        "print(model)",
        show(f"model.{run}", *([length] if length else []), batch=batch),
        *cache,
        f"print({call('model.formulas', training=question.training or None)}.text())",
        command=command(
            CostCommand,
            layer="config.json",
            length=length,
            batch=batch,
            training=question.training,
            formulas=True,
        ),
        latex=latex,
    )


MODEL = Panel("model", "A model from its config.json", answer_model)
