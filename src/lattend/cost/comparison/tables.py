"""Two tables of numbers from the cost model: architectures side by side, and RNN against Transformer."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import isqrt
from pathlib import Path
from typing import Any, cast

from lattend.cost.amount import Amount
from lattend.cost.comparison.comparison import Comparison, compare
from lattend.cost.cost import Cost
from lattend.cost.layers.attention import attention
from lattend.cost.layers.conv import conv
from lattend.cost.layers.recurrent import rnn
from lattend.cost.layers.transformer import decoder
from lattend.cost.sizes import Size, need_number, read_size
from lattend.counts.count import Count
from lattend.counts.latex import maths, order_maths, value_maths
from lattend.counts.notation import Notation
from lattend.counts.verdict import Verdict
from lattend.errors import DomainError, NamingError
from lattend.report.maths import Sentence, marked
from lattend.report.report import Printed, Report
from lattend.report.table import SAME, Table
from lattend.rules.language.linear import monomial
from lattend.rules.language.polynomial import Polynomial
from lattend.rules.rule import check_integer

LABELS = {"convolution": "convolution", "rnn": "RNN", "attention": "self-attention"}
NUMBERS = {
    "parameters": "parameters",
    "multiplies": "multiplies",
    "dense": "multiplies, padding too",
    "bare": "multiplies, no projections",
    "order": "order of multiplies",
    "depth": "sequential depth",
    "path": "maximum path length, in layers or steps",
    "saved_activations": "saved activations, numbers",
}
Row = tuple[str, dict[str, str]]


@dataclass(frozen=True, eq=False, repr=False)
class Architectures(Printed):
    """The table: n pixels of a square image, n steps or n tokens of d numbers; kernels of k × k."""

    n: Size
    d: Size
    k: Size
    costs: Mapping[str, Cost]

    @property
    def rows(self) -> list[Row]:
        """Every row by its name: first those that are derived, then those in words."""
        return [*self.numbers, *self.sentences]

    @cached_property
    def numbers(self) -> list[Row]:
        """The rows that the cost model gives."""
        rows = [
            (words, {name: self._cell(name, cost, quantity) for name, cost in self.costs.items()})
            for quantity, words in NUMBERS.items()
        ]
        return [row for row in rows if any(cell != SAME for cell in row[1].values())]

    @cached_property
    def sentences(self) -> list[Row]:
        """The rows in words, from the file beside this one."""
        text = Path(__file__).with_name("architectures.toml").read_text(encoding="utf-8")
        return [(row["name"], {name: row[name] for name in LABELS}) for row in tomllib.loads(text)["rows"]]

    def _cell(self, name: str, cost: Cost, quantity: str) -> str:
        match quantity:
            case "dense" | "bare":
                bare = {"attention": attention("full", n=self.n, heads=1, D_hid=self.d, projections=None)}
                other = cost.dense if quantity == "dense" else bare.get(name, cost)
                needed, other_text = (self._format(x.amount("multiplies")) for x in (cost, other))
                return SAME if needed == other_text else other_text
            case "order":
                return SAME if isinstance(self.n, int) else order_maths(self.comparison.orders[LABELS[name]])
            case "path":
                ((_, layer),) = cost.parts
                path = layer.path_length()
                if path is None and isinstance(self.k, str):  # (k - 1)/2 pixels a layer
                    across = f"2({self.side} - 1)" if self.side else f"{2 * isqrt(int(self.n)) - 2}"
                    return maths(f"⌈{across}/({self.k} - 1)⌉")
                return "never" if path is None else self._format(path)
            case _:
                return self._format(cost.amount(quantity))

    def _format(self, amount: Amount) -> str:
        """A number with commas, or a formula in which the square of the side is n."""
        count, plain, side = amount.count(), amount.plain, self.side
        if not isinstance(count, Count):
            return f"{count:,}"
        if plain is None or side not in plain.atoms:
            return value_maths(count)
        terms: list[Any] = []
        for powers, coefficient in plain.terms.items():
            exponent = dict(powers).get(side, 0)
            rest = [(name, power) for name, power in powers if name != side]
            powers_of_n = monomial([*rest, (str(self.n), exponent // 2), (side, exponent % 2)])
            terms.append((coefficient, powers_of_n))
        return maths(Notation([str(self.n), side]).formula(Polynomial.of(terms)))

    @property
    def side(self) -> str:
        """The symbol of the image's side, where n is a symbol."""
        return "" if isinstance(self.n, int) else _side(self.n, self.d)

    @cached_property
    def claims(self) -> list[tuple[str, Verdict]]:
        """Verdicts on a convolution of n pixels, padding counted, against k²·d·n and k²·d²·n.

        The first is a depthwise one, or one with a single output channel; for d channels in and out it fails.
        """
        image: dict[str, Any] = {"rows": "n", "cols": 1, "kernel": self.k, "padding": "same"}
        short, long = f"{self.k}^2*d*n", f"{self.k}^2*d^2*n"
        tried: list[tuple[str, dict[str, Any], str]] = [
            ("k^2*d*n with d channels in and out", {"c_in": "d", "c_out": "d"}, short),
            ("k^2*d^2*n with d channels in and out", {"c_in": "d", "c_out": "d"}, long),
            ("k^2*d*n where it is depthwise", {"c_in": "d", "c_out": "d", "groups": "d"}, short),
            ("k^2*d*n with one output channel", {"c_in": "d", "c_out": 1}, short),
        ]
        return [
            (words, conv(**image, **channels, bias=False).dense.claim("multiplies", text))
            for words, channels, text in tried
        ]

    @cached_property
    def comparison(self) -> Comparison:
        """The three as n grows; padding is counted, so that the image's shape does not matter."""
        over = "n" if isinstance(self.n, int) else self.n
        costs = dict(architectures(over, self.d, self.k).costs)
        image: dict[str, Any] = {"rows": over, "cols": 1, "kernel": self.k, "padding": "same"}
        costs["convolution"] = conv(**image, c_in=self.d, c_out=self.d, bias=False).dense
        return compare({LABELS[name]: cost for name, cost in costs.items()}, over=over)

    @property
    def title(self) -> str:
        cells = [cell for _, row in self.numbers for cell in row.values()]
        has_side = self.side and any(re.search(rf"(?<![a-z]){self.side}\b", cell) for cell in cells)
        root = f"; {self.side} = √{self.n} is the side of the image" if has_side else ""
        return f"One layer each: {self.n} positions of {self.d} numbers, {self.k} × {self.k} kernel{root}"

    def report(self) -> Report:
        """The printed report."""
        rows = [(name, *cells.values()) for name, cells in self.rows]
        parts: list[Table | str] = [
            Table(("", *LABELS.values()), rows, wraps=True),
            "",
            f"{self.comparison.title}, padding too",
        ]
        parts += [*self.comparison.crossing_lines, ""]
        at = "" if isinstance(self.k, str) else f", k = {self.k}"
        parts.append(f"multiplies of a convolution of n pixels, padding counted{at}")
        for words, verdict in self.claims:
            formulas = [maths(text) for text in (verdict.claim, verdict.where)]
            formulas += [maths(text.removeprefix("exactly ")) for text in verdict.readings]
            parts += [marked(line, formulas) for line in f"{words}: {verdict}".splitlines()]
        return Report(self.title, parts)

    def __repr__(self) -> str:
        return f"<Architectures: {self.title}>"

    def json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {
            "n": self.n,
            "d": self.d,
            "k": self.k,
            "columns": list(LABELS.values()),
            "numbers": {name: list(cells.values()) for name, cells in self.numbers},
            "words": {name: list(cells.values()) for name, cells in self.sentences},
            "claims": [{"words": words, **verdict.json()} for words, verdict in self.claims],
            "crossovers": [pair.json() for pair in self.comparison.crossovers],
        }


def architectures(n: Size = "n", d: Size = "d", k: Size = "k") -> Architectures:
    """The table of CNNs, RNNs and Transformers for n positions of d numbers, as formulas or numbers.

    The kernel is k × k: a name, or an odd number.

    >>> dict(architectures(n=64, d=8).rows)["sequential depth"]
    {'convolution': '1', 'rnn': '64', 'attention': '1'}
    """
    if isinstance(k, int) and need_number("k", k) % 2 == 0:
        raise DomainError(f"k must be odd, so that the kernel has a middle, got {k}")
    if isinstance(n, int):
        side: Size = isqrt(need_number("n", n))
        if side * side != n:
            raise DomainError(f"n is the number of pixels of a square image, and {n} is no square number")
    else:
        if read_size("n", n) != Polynomial.atom(n):
            raise NamingError(f"n is a number or a name here, not {n}")
        side = _side(n, d)
    image: dict[str, Any] = {"rows": side, "cols": side, "kernel": k, "padding": "same"}
    return Architectures(
        n,
        d,
        k,
        {
            "convolution": conv(**image, c_in=d, c_out=d, bias=False),
            "rnn": rnn(steps=n, inputs=d, hidden=d),
            "attention": attention("full", n=n, heads=1, D_i=d, D_hid=d, out_bias=False),
        },
    )


def _side(n: Size, d: Size) -> str:
    return next(name for name in ("s", "side", "edge") if name not in (str(n), str(d)))


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
        """The printed report."""
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
