"""Pictures of steered queries: weights against sharpness, errors and bounds, a map of keys and cones."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lattend.draw.charts.chart import Arrows, Chart, Dots, Shape, Stroke, curves
from lattend.draw.picture import Picture
from lattend.errors import TensorError
from lattend.study.figures import figure
from lattend.study.steering.linear import divergence, softmax
from lattend.study.steering.numbers import NumberArray, check_scale, read
from lattend.study.steering.ray import NEVER
from lattend.study.steering.reports import MOST_ROWS, named_heads, six_digits
from lattend.study.steering.steer import one, plain

if TYPE_CHECKING:
    from lattend.study.steering.steer import Steered, SteeredHeads
    from lattend.study.steering.trial import Trial

Point = tuple[Any, Any]  # floats or Fractions


class WinningCone(NamedTuple):
    """The directions in which these keys win: those of one corner of the hull, which are equal.

    `start` and `end` are its sides, unit vectors, counter-clockwise; on a side the keys of an edge share.
    Both are None where all keys are equal, and every direction is as good.
    """

    keys: tuple[int, ...]
    start: tuple[float, float] | None
    end: tuple[float, float] | None


def winning_cones(keys: Any, scale: float | str = 1) -> tuple[WinningCone, ...]:
    """The cone of every corner of the hull of `keys` [m, 2], counter-clockwise; keys inside never win.

    A query in the cone has its greatest logit on that corner, however long it is.

    >>> cones = winning_cones([[0, 0], [2, 0], [0, 2], [0.5, 0.5]])  # the last is inside
    >>> [cone.keys for cone in cones], cones[0].end  # key 0 wins down to the direction (0, -1)
    ([(0,), (1,), (2,)], (0.0, -1.0))
    """
    rows = read("keys", keys)
    if rows.floats.ndim != 2 or rows.floats.shape[1] != 2:
        raise TensorError(f"keys has shape {rows.floats.shape}; cones are drawn for keys of two numbers")
    sign = math.copysign(1.0, check_scale(scale, 2))
    points = _exact_points(rows)
    corners = hull(points)
    if len(corners) == 1:
        return (WinningCone(tuple(range(len(points))), None, None),)
    normals = [
        _normal(corner, after, sign) for corner, after in zip(corners, corners[1:] + corners[:1], strict=True)
    ]
    return tuple(
        WinningCone(
            tuple(key for key, point in enumerate(points) if point == corner), normals[at - 1], normals[at]
        )
        for at, corner in enumerate(corners)
    )


def _exact_points(rows: NumberArray) -> list[Point]:
    numbers = rows.floats if rows.fractions is None else rows.fractions
    return [(row[0], row[1]) for row in numbers.tolist()]


def _normal(corner: Point, after: Point, sign: float) -> tuple[float, float]:
    """The unit vector out of the hull at the edge from a corner to the one after it."""
    across, up = float(after[0] - corner[0]), float(after[1] - corner[1])
    length = math.hypot(across, up)
    return sign * up / length, -sign * across / length


def hull(points: Iterable[Point]) -> list[Point]:
    """The corners of the convex hull, counter-clockwise from the leftmost: the lower side, then the upper.

    >>> hull([(0, 0), (1, 1), (2, 0), (1, 3), (1, 0)])
    [(0, 0), (2, 0), (1, 3)]
    """
    ordered = sorted(set(points))
    if len(ordered) < 2:
        return ordered

    def side(along: list[Point]) -> list[Point]:
        corners: list[Point] = []
        for point in along:
            while len(corners) > 1 and _turn(corners[-2], corners[-1], point) <= 0:
                corners.pop()
            corners.append(point)
        return corners[:-1]

    return side(ordered) + side(ordered[::-1])


def _turn(a: Point, b: Point, c: Point) -> Any:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


PLACES = 65  # of a curve
MOST_LINES = 4  # keys with a line of their own
MOST_HEADS = 5  # with a line of their own
SAME = 1e-9  # logits that differ by less are equal
BY_LENGTH = "length of the query, 1 as given"
ROOM = 0.06  # of a map's longer side, on each side, for the names of keys


def figure_of_query(steered: Steered) -> Picture:
    """The report, weights and error as curves, and a map where keys have two numbers."""
    ray = steered.ray
    charts = _by_length(steered) if ray.face.all() else _by_sharpness(steered)
    if ray.keys.shape[1] == 2:
        charts = (_map(ray.keys, ray.wanted, plain(steered.query)), *charts)
    return figure(steered.report(), charts)


def figure_of_trial(trial: Trial) -> Picture:
    """The report, the weights as the query grows, and a map where keys have two numbers."""
    charts: tuple[Chart, ...] = ()
    if np.ptp(trial.logits) >= SAME:
        lengths = np.linspace(0.0, 2.0, PLACES)
        weights = trial.made_longer(lengths)
        shown = trial.weights if trial.wanted is None else trial.wanted
        charts = (Chart("What keys get", BY_LENGTH, "weight", _lines(shown, lengths, weights)),)
    if trial.keys.shape[1] == 2:
        charts = (_map(trial.keys, trial.wanted, trial.query), *charts)
    return figure(trial.report(), charts)


def _lines(wanted: Any, places: Any, weights: Any) -> tuple[Stroke, ...]:
    """A line for each of the most wanted keys, and one for all others together; weights [places, m]."""
    own = [at for at in np.argsort(-wanted, kind="stable") if wanted[at] > 0][:MOST_LINES]
    rest = np.setdiff1d(np.arange(len(wanted)), own)
    lines = [(f"key {at}", weights[:, at]) for at in own]
    if len(rest):
        lines.append((f"key {rest[0]}" if len(rest) == 1 else "all others", weights[:, rest].sum(axis=1)))
    return curves([(name, _points(places, line)) for name, line in lines])


def _points(places: Any, heights: Any) -> tuple[tuple[float, float], ...]:
    return tuple(zip(map(float, places), map(float, heights), strict=True))


def _by_sharpness(steered: Steered) -> tuple[Chart, ...]:
    ray, chosen = steered.ray, one(steered.sharpness)
    places = np.linspace(min(0.0, chosen), max(8.0, 1.25 * chosen), PLACES)
    places = np.union1d(places, ray.turns(places))
    weights = np.array([softmax(ray.logits(beta)) for beta in places])
    gets = Chart("What keys get", "sharpness β", "weight", _lines(ray.wanted, places, weights))
    if ray.reach == NEVER:
        return gets, _divergences(
            steered, "sharpness β", places, [ray.logits(beta) for beta in places], chosen
        )
    errors, bounds = _errors(steered, places)
    lines = curves([("bound", _points(places, bounds)), ("error", _points(places, errors))])
    dot = _here(f"error {six_digits(one(steered.error))}", (chosen, max(1e-300, one(steered.error))))
    return gets, Chart("Error and bound", "sharpness β", "error", lines, dot, log_y=10)


def _here(label: str, place: tuple[float, float]) -> tuple[Dots, ...]:
    return (Dots([place], "", "#1c1f26", 3.0, "square", [label]),)


def _errors(steered: Steered, places: Any) -> tuple[list[float], list[float]]:
    ray = steered.ray
    least = 1e-300  # for a logarithmic scale
    errors = [max(least, ray.error(ray.logits(beta))) for beta in places]
    return errors, [max(error, ray.promised(beta)) for error, beta in zip(errors, places, strict=True)]


def _by_length(steered: Steered) -> tuple[Chart, ...]:
    """Charts of the same query made shorter and longer, where no sharpness is needed."""
    if np.ptp(plain(steered.logits)) < SAME:
        return ()
    lengths = np.linspace(0.0, 2.0, PLACES)
    logits = [length * plain(steered.logits) for length in lengths]
    weights = np.array([softmax(row) for row in logits])
    gets = Chart("What keys get", BY_LENGTH, "weight", _lines(steered.ray.wanted, lengths, weights))
    if steered.reach == NEVER:
        return gets, _divergences(steered, BY_LENGTH, lengths, logits, 1.0)
    errors = np.abs(weights - steered.ray.wanted).sum(axis=1) / 2
    return gets, Chart("Error", BY_LENGTH, "error", curves([("error", _points(lengths, errors))]))


def _divergences(steered: Steered, across: str, places: Any, logits: Any, sharpness: float) -> Chart:
    """The KL that the best fit makes least, with the least for any query and where this one is."""
    assert steered.certificate is not None
    wanted, least = steered.ray.wanted, steered.certificate.nats
    nats = [divergence(wanted, row) for row in logits]
    kl = divergence(wanted, plain(steered.logits))
    least_line = _points(places, np.full(len(nats), least))
    lines = curves([("this direction", _points(places, nats)), ("least of any query", least_line)])
    dot = _here(f"this query {six_digits(kl)}", (sharpness, kl))
    return Chart("KL(wanted ‖ attention)", across, "nats", lines, dot)


def _map(keys: Any, wanted: Any, query: Any) -> Chart:
    """Keys of two numbers, their hull, the wanted mixture of keys, and the direction of the query.

    The query starts at the mixture, or at the mean key where no weights are `wanted`.
    """
    used = np.zeros(len(keys), dtype=bool) if wanted is None else wanted > 0
    mean = keys.mean(axis=0) if wanted is None else wanted @ keys
    named = len(keys) <= MOST_ROWS

    def dots(which: Any, name: str, colour: str, shape: Shape) -> Dots:
        labels = [str(at) for at in np.flatnonzero(which)] if named else []
        return Dots(keys[which], name, colour, 4.0, shape, labels)

    marks: list[Dots] = []
    if used.sum() > 1:  # below the keys; the mixture of one key is that key
        marks.append(Dots(mean[None], "wanted mixture", "#1c1f26", 4.0, "cross"))
    if used.any():
        marks.append(dots(used, "wanted keys" if used.sum() > 1 else "wanted key", "#d55e00", "square"))
    if not used.all():
        name = "key" if wanted is None else "other key"
        marks.append(dots(~used, f"{name}s" if (~used).sum() > 1 else name, "#0072b2", "dot"))
    arrows: tuple[Arrows, ...] = ()
    if query.any():
        size = float(np.ptp(keys, axis=0).max()) or 1.0
        tip = mean + 0.35 * size * query / np.linalg.norm(query)
        arrows = (Arrows(((mean.tolist(), tip.tolist()),), "query", "#1c1f26", 1.4),)
    corners = hull((x, y) for x, y in keys.tolist())
    edge = [*corners, corners[0]]
    lines = (Stroke(edge, "hull of the keys", "#8c96a3", 1.2, under=True),) if len(corners) > 1 else ()
    chart = Chart("Keys", "first number", "second number", lines, tuple(marks), arrows, equal=True)
    (left, right), (bottom, top) = chart.ends()
    room = ROOM * max(right - left, top - bottom)
    return replace(chart, x=(left - room, right + room), y=(bottom - room, top + room))


def figure_of_heads(steered: SteeredHeads) -> Picture:
    """A table of the heads, and the error of the first ones against their sharpness."""
    faced = [(name, head) for name, head in named_heads(steered) if not head.ray.face.all()]
    charts: tuple[Chart, ...] = ()
    if faced:
        places = np.linspace(0.0, max(8.0, *(1.25 * one(head.sharpness) for _, head in faced)), PLACES)
        lines = [
            (f"head {name}", _points(places, _errors(head, places)[0])) for name, head in faced[:MOST_HEADS]
        ]
        charts = (Chart("Error by head", "sharpness β", "error", curves(lines), log_y=10),)
    return figure(steered.report(), charts)
