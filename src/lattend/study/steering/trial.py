"""try_query: what attention returns for a given query, and how far that is from the weights one wishes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.errors import DomainError, TensorError
from lattend.report.report import Printed, Report
from lattend.report.shown import Drawn
from lattend.report.table import Facts
from lattend.study.steering.linear import Floats, divergence, dots, heights, softmax
from lattend.study.steering.numbers import NumberArray, check_scale, check_shapes, check_values, read
from lattend.study.steering.reports import format_keys, format_vector, key_table, positive, six_digits
from lattend.study.steering.steer import Steered, normal, one, plain, steer
from lattend.wording import many

if TYPE_CHECKING:
    from lattend.draw.picture import Picture

LARGEST = 1e150  # of a logit: its square is a float too
SAME = 1e-9  # of the length of vectors: directions and logits of floats that differ by less are equal


def try_query(
    keys: Any, query: Any, weights: Any = None, values: Any = None, scale: float | str = 1
) -> Trial:
    """Attention over `keys` [m, D] for this `query` [D]: softmax(scale·Kq).

    With the wished `weights` [m], also how far it is from them, and the query that `steer` finds instead.

    >>> found = try_query([[1, 0], [2, 0]], [3, 0], [1, 0])  # parallel to the wanted key
    >>> found.weights.round(4), found.leaders  # the other key has the logit 6, this one 3
    (array([0.0474, 0.9526]), (1,))
    """
    rows, tried = (read(name, plain_or_given(value)) for name, value in (("keys", keys), ("query", query)))
    if rows.floats.ndim != 2:
        raise TensorError(f"keys has shape {rows.floats.shape}; a query is tried on one head, [m, D]")
    if tried.floats.shape != rows.floats.shape[1:]:
        raise TensorError(
            f"query has shape {tried.floats.shape}, and keys have {many(rows.floats.shape[1], 'number')}; "
            "give as many"
        )
    wished = None
    if weights is not None:
        wanted = read("weights", plain_or_given(weights))
        check_shapes(rows.floats, wanted.floats, wanted.small)
        wished = normal(wanted).floats
    carried = None
    if values is not None:
        carried = check_values(read("values", plain_or_given(values)).floats, len(rows.floats), ())
    factor = check_scale(scale, rows.floats.shape[1])
    best = None if weights is None else steer(keys, weights, scale=scale)
    assert best is None or isinstance(best, Steered)
    _check_logits(rows.floats, tried.floats, factor)
    return Trial(rows.floats, tried.floats, factor, _leaders(rows, tried, factor), wished, carried, best)


def _check_logits(keys: Floats, query: Floats, scale: float) -> None:
    """Raises where logits are beyond floats."""
    longest = float(np.abs(keys).max()) * float(np.abs(query).max()) * len(query) * max(1.0, abs(scale))
    if not longest < LARGEST:
        raise DomainError("the logits are beyond floats; give keys and a query nearer to 1")


def plain_or_given(value: Any) -> Any:
    """A tensor as an array; other numbers as they are."""
    return plain(value) if hasattr(value, "detach") else value


def _leaders(keys: NumberArray, query: NumberArray, scale: float) -> tuple[int, ...]:
    """The keys with the greatest logit: exactly where numbers are exact, else up to rounding."""
    if keys.fractions is not None and query.fractions is not None:
        logits = (keys.fractions @ query.fractions) * (1 if scale > 0 else -1)
        return tuple(np.flatnonzero(logits == logits.max()).tolist())
    below = heights(keys.floats, np.copysign(1.0, scale) * query.floats)
    slack = SAME * float(np.linalg.norm(keys.floats, axis=1).max() * np.linalg.norm(query.floats))
    return tuple(np.flatnonzero(below >= -slack).tolist())


@dataclass(frozen=True, eq=False, repr=False)
class Trial(Drawn, Printed):
    """A given query with its logits and weights; `wanted` are the wished weights, if there are any.

    `leaders` are the keys with the greatest logit: they share all weight as the query is made longer.
    `best` is the query that `steer` finds for the wish.
    """

    JSON = (
        "query scale logits weights parallel leaders wanted max_error error divergence "
        "output wanted_output how best"
    )

    keys: Floats
    query: Floats
    scale: float
    leaders: tuple[int, ...]
    wanted: Floats | None = None
    values: Floats | None = None
    best: Steered | None = None

    @cached_property
    def logits(self) -> Floats:
        """scale·Kq."""
        high, low = dots(self.keys, self.query)
        return self.scale * (high + low)

    @cached_property
    def weights(self) -> Floats:
        """softmax(logits)."""
        return softmax(abs(self.scale) * heights(self.keys, np.copysign(1.0, self.scale) * self.query))

    @property
    def limit(self) -> Floats:
        """The weights that this query nears as it is made longer: equal shares for its leaders."""
        weights = np.zeros(len(self.keys))
        weights[list(self.leaders)] = 1 / len(self.leaders)
        return weights

    def made_longer(self, lengths: Any) -> Floats:
        """The weights [places, m] of this query times each of these lengths.

        >>> try_query([[1], [0]], [1]).made_longer([0, 1]).round(4).tolist()  # 1/(1 + e⁻¹) = 0.7311
        [[0.5, 0.5], [0.7311, 0.2689]]
        """
        return np.array([softmax(length * self.logits) for length in np.asarray(lengths, dtype=float)])

    @property
    def parallel(self) -> tuple[int, ...]:
        """The keys that the query is parallel to: a positive multiple of them."""
        lengths = np.linalg.norm(self.keys, axis=1)
        long = float(np.linalg.norm(self.query))
        if long == 0:
            return ()
        apart = np.linalg.norm(self.keys * long - np.outer(lengths, self.query), axis=1)
        return tuple(np.flatnonzero((lengths > 0) & (apart <= SAME * long * lengths)).tolist())

    @property
    def max_error(self) -> float | None:
        """The greatest difference of a weight from the wished one."""
        return None if self.wanted is None else float(np.abs(self.weights - self.wanted).max())

    @property
    def error(self) -> float | None:
        """The total-variation distance from the wished weights: half the sum of the differences."""
        return None if self.wanted is None else float(np.abs(self.weights - self.wanted).sum() / 2)

    @property
    def divergence(self) -> float | None:
        """KL(wished ‖ attention), in nats."""
        return None if self.wanted is None else divergence(self.wanted, self.logits)

    @property
    def output(self) -> Floats | None:
        """Σ weight·value."""
        return None if self.values is None else self.weights @ self.values

    @property
    def wanted_output(self) -> Floats | None:
        return None if self.values is None or self.wanted is None else self.wanted @ self.values

    @property
    def how(self) -> str:
        """The effect of the query's direction and of its length, in a sentence or two."""
        return " ".join((*self._aim(), self._longer()))

    def _aim(self) -> list[str]:
        """Whether a query parallel to the one wanted key favours it."""
        alone = [] if self.wanted is None else np.flatnonzero(self.wanted).tolist()
        if len(alone) != 1 or alone[0] not in self.parallel:
            return []
        text = f"The query is parallel to {format_keys(alone)}, the wanted one"
        if alone[0] in self.leaders:
            return [f"{text}, and no key has a greater logit."]
        other = self.leaders[0]
        logit, greatest = (six_digits(float(self.logits[at])) for at in (alone[0], other))
        return [
            f"{text}, but that does not suffice: its logit is {logit}, and key {other} has {greatest}, as "
            "logits grow with the length of a key along the query."
        ]

    def _longer(self) -> str:
        if len(self.leaders) == len(self.keys):
            return "All logits are equal: every key gets the same, however long the query is."
        which = format_keys(self.leaders)
        share = "all" if len(self.leaders) == 1 else "equal shares of all"
        return f"Made longer, this query gives {share} to {which} in the limit."

    def report(self) -> Report:
        """The query's facts, and the keys in a table."""
        facts = [("query", format_vector(self.query))]
        if self.scale != 1:
            facts.append(("scale", f"{six_digits(self.scale)}, in logits = scale·Kq"))
        if self.parallel:
            facts.append(("parallel", f"to {format_keys(self.parallel)}"))
        if self.output is not None:
            facts.append(("output", format_vector(self.output)))
        facts += self._distances()
        table = key_table(self.wanted, self.logits, self.weights)
        return Report(
            f"Attention over {many(len(self.keys), 'key')}, for a given query",
            [self.how, Facts(facts), table],
            self.json(),
        )

    def _distances(self) -> list[tuple[str, str]]:
        if self.max_error is None or self.error is None or self.divergence is None or self.best is None:
            return []
        # A softmax never gives a key the wanted weight 0
        format_error = positive if self.wanted is not None and not self.wanted.all() else six_digits
        facts = [
            ("max error", f"{format_error(self.max_error)}, the greatest difference of a weight"),
            ("error", f"{format_error(self.error)}, half the sum of the differences of weights"),
            ("KL", f"{format_error(self.divergence)} nats, of the wanted weights from these"),
        ]
        if self.wanted_output is not None and self.output is not None:
            apart = float(np.linalg.norm(self.output - self.wanted_output))
            facts.append(("wanted", f"output {format_vector(self.wanted_output)}; {six_digits(apart)} apart"))
        best = one(self.best.error)
        if best < self.error:
            query_text = format_vector(plain(self.best.query))
            reached = "and none is nearer by KL" if self.best.certificate else f"reached {self.best.reach}"
            facts.append(("better", f"{query_text} has error {six_digits(best)}, {reached}"))
        return facts

    def draw(self) -> Picture:
        """The weights against the length of the query, and keys of two numbers as a map."""
        from lattend.study.steering.pictures import figure_of_trial

        return figure_of_trial(self)

    __repr__ = Printed.__str__
