"""RNN against Transformer: time and space, in training and at test, with what is usually claimed of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

from lattend.cost.amount import Amount
from lattend.cost.comparison.comparison import Comparison, compare
from lattend.cost.cost import Cost
from lattend.cost.layers.attention import attention
from lattend.cost.layers.recurrent import rnn
from lattend.cost.layers.transformer import decoder
from lattend.counts.count import Count
from lattend.counts.latex import maths, order_maths, value_maths
from lattend.counts.verdict import Verdict
from lattend.errors import NamingError
from lattend.report.maths import Sentence
from lattend.report.report import Printed, Report
from lattend.report.table import Table
from lattend.rules.rule import check_integer

LETTERS = {"t": "steps", "l": "layers", "n": "neurons"}
RNN, ALONE, TRANSFORMER = "RNN", "attention alone", "Transformer"
MEANINGS = {
    RNN: "rnn(steps=t, inputs=n, hidden=n, layers=l)",
    ALONE: "l * attention(causal, n=t, heads=1, D_i=n, D_hid=n, projections=none)",
    TRANSFORMER: "decoder(n=t, d=n, heads=1, layers=l), with projections and feed-forward nets",
}


def _trained(cost: Cost) -> Amount:
    return cost.amount("multiplies") + cost.backward.amount("multiplies")


@dataclass(frozen=True)
class TableQuestion:
    """One of the tables: what is asked, how it is measured, and what is usually claimed of each model."""

    name: str
    measured: str
    amount: Callable[[Cost], Amount]
    claims: Mapping[str, str]


QUESTIONS = (
    TableQuestion(
        "time in training",
        "multiplies, forward and backward",
        _trained,
        {RNN: "O(t l n^2)", ALONE: "O(t^2 l n)", TRANSFORMER: "O(t^2 l n)"},
    ),
    TableQuestion(
        "space in training",
        "saved activations, numbers",
        lambda cost: cost.amount("saved_activations"),
        dict.fromkeys(MEANINGS, "O(t l n)"),
    ),
    TableQuestion(
        "time at test",
        "multiplies to make t tokens one after another",
        lambda cost: cost.amount("multiplies"),
        {RNN: "O(t l n^2)", ALONE: "O(t^2 l n)", TRANSFORMER: "O(t^2 l n)"},
    ),
    TableQuestion(
        "space at test",
        "the recurrent state or the KV cache, numbers",
        lambda cost: cost.amount("cache"),
        {RNN: "O(l n)", ALONE: "O(t l n)", TRANSFORMER: "O(t l n)"},
    ),
)


@dataclass(frozen=True, eq=False)
class ModelAnswer:
    """One model's answer to a question: the exact formula, its order, and the verdict on the usual claim."""

    model: str
    formula: Count
    claim: str
    values: Mapping[str, int]

    @cached_property
    def order(self) -> str:
        return str(self.formula.order())

    @cached_property
    def verdict(self) -> Verdict:
        return self.formula.claim(self.claim)

    @property
    def number(self) -> Count | int:
        """The formula at the numbers that were given."""
        known = {name: value for name, value in self.values.items() if name in self.formula.names}
        return cast("Count | int", self.formula.at(**known)) if known else self.formula

    @property
    def verdict_words(self) -> str:
        """`holds`, or why not."""
        why = f": {self.verdict.because}" if self.verdict.because else ""
        return f"{self.verdict.status}{why}"

    def cells(self) -> tuple[str, ...]:
        """The row as it is printed."""
        claim = Sentence(maths(self.claim), f": {self.verdict_words}")
        return self.model, value_maths(self.number), order_maths(self.order), claim

    def json(self) -> dict[str, Any]:
        number = self.number
        return {
            "model": self.model,
            "formula": str(self.formula),
            "at": dict(self.values),
            "number": number if isinstance(number, int) else None,
            "order": self.order,
            **self.verdict.json(),
        }


@dataclass(frozen=True, eq=False, repr=False)
class TrainTest(Printed):
    """The four tables, by the name of what is asked, and where the models cross as t grows."""

    costs: Mapping[str, Cost]
    values: Mapping[str, int]

    @cached_property
    def tables(self) -> dict[str, list[ModelAnswer]]:
        """Each question with the answers of all models."""
        return {
            question.name: [self._answer(question, model) for model in self.costs] for question in QUESTIONS
        }

    def _answer(self, question: TableQuestion, model: str) -> ModelAnswer:
        counted = question.amount(self.costs[model]).formula(f"{model} ({question.name})")
        if not isinstance(counted, Count):
            raise NamingError(f"{question.name} of {model} has no formula")
        return ModelAnswer(model, counted, question.claims[model], self.values)

    def __getitem__(self, key: tuple[str, str]) -> ModelAnswer:
        """`tables["space at test", "RNN"]`."""
        question, model = key
        for answer in self.tables.get(question, ()):
            if answer.model == model:
                return answer
        known, models = ", ".join(self.tables), ", ".join(self.costs)
        raise NamingError(f"there is no {question!r} of {model!r}; there are {known}, each of {models}")

    @cached_property
    def comparison(self) -> Comparison:
        """The three at test as t grows."""
        numbers = {name: value for name, value in self.values.items() if name != "t"}
        return compare(self.costs, over="t", at=numbers)

    @property
    def title(self) -> str:
        """`RNN against Transformer: t steps, l layers, n neurons`."""
        numbers = ", ".join(f"{name} = {value:,}" for name, value in self.values.items())
        letters = ", ".join(f"{name} {words}" for name, words in LETTERS.items())
        return f"RNN against Transformer: {letters}{'; at ' + numbers if numbers else ''}"

    def report(self) -> Report:
        """What it prints."""
        parts: list[Table | str] = []
        for question in QUESTIONS:
            rows = [answer.cells() for answer in self.tables[question.name]]
            parts += ["", f"{question.name}: {question.measured}"]
            parts.append(Table(("", "exactly", "order", "usual claim"), rows, wraps=True))
        crossed = [line for line in self.comparison.crossing_lines if not line.startswith("  ")]
        parts += ["", "multiplies at test, as t grows", *crossed, ""]
        parts += [f"{model} is {meaning}" for model, meaning in MEANINGS.items()]
        return Report(self.title, parts)

    def json(self) -> dict[str, Any]:
        """The same as plain data."""
        tables = {name: [answer.json() for answer in answers] for name, answers in self.tables.items()}
        crossed = [pair.json() for pair in self.comparison.crossovers]
        return {"at": dict(self.values), "meanings": MEANINGS, "tables": tables, "crossovers": crossed}

    def __repr__(self) -> str:
        return f"<TrainTest: {self.title}>"


def train_test(**values: int) -> TrainTest:
    """RNN against Transformer in time and space, in training and at test: t steps, l layers, n neurons.

    >>> str(train_test()["space at test", "RNN"].formula)
    'n*l'
    """
    for name, value in values.items():
        if name not in LETTERS:
            raise NamingError(f"the tables have no {name}; they have {', '.join(LETTERS)}")
        check_integer(name, value)
    bare = attention("causal", n="t", heads=1, D_i="n", D_hid="n", projections=None)
    costs = {
        RNN: rnn(steps="t", inputs="n", hidden="n", layers="l"),
        ALONE: bare * "l",
        TRANSFORMER: decoder(n="t", d="n", heads=1, layers="l"),
    }
    return TrainTest(costs, values)
