"""The canonical form of a rule: one condition for one set, however the rule was written.

The set of the rule is described to isl; its pieces are grown as far as the set reaches, what the others hold
already is dropped, and what is left is written down in one way:

    not q < k  or  q - k >= 0            k <= q
    (q - k) // 16 * 16 == q - k          (q - k) % 16 == 0
    q - q % 64 <= k <= q                 q // 64 == k // 64 and k <= q
    k <= q or k < 3000                   k <= max(q, 2999)

Comparisons with data (`doc[q] == doc[k]`) are taken for unknown truths, on each choice of which the rest is a
set. A form counts only once isl has proved that it describes the same set.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from itertools import product
from math import gcd
from threading import Lock

import islpy as isl

from lattend.errors import NoClosedForm, NotAffineError
from lattend.rules.axes import HEAD, HEADS, Axis
from lattend.rules.language import expr
from lattend.rules.language.expr import Compare, Condition
from lattend.rules.language.key import CanonicalForm
from lattend.rules.language.linear import Linear, Quotient
from lattend.sets.bound import bound_of
from lattend.sets.intervals import Frame, interval_form
from lattend.sets.set_to_condition import piece_conditions, sort_key, term_of

MAX_OPERATIONS = 1_000_000  # of isl, for one form: the same rule gives up at the same place on every machine
MAX_UNKNOWNS = 3  # comparisons with data; each triples the choices to go through
_ISL = Lock()  # isl's context is one for all threads


def canonical(condition: Condition, axes: tuple[Axis, ...], domain: Condition) -> CanonicalForm:
    """Returns the form of a condition without open parameters; it holds for all sizes within `domain`.

    >>> from lattend.rules.axes import LINE
    >>> from lattend.rules.language.parser import parse
    >>> expr.text(canonical(parse("q - k >= 0 and not k < q - 255"), LINE, expr.Truth(True)).condition)
    'k <= q and q - k <= 255'
    """
    pushed = expr.pushed(condition, _data)
    unknowns = expr.data_comparisons(pushed)
    if len(unknowns) > MAX_UNKNOWNS:
        return CanonicalForm.given_up(condition, f"it looks up data in {len(unknowns)} ways")
    frame = Frame(axes, domain, HEAD in expr.names(condition) or HEADS in expr.names(condition))
    try:
        with _Limited():
            return _of_choices(pushed, unknowns, frame)
    except NotAffineError:
        return CanonicalForm.given_up(condition, "it is not affine")
    except NoClosedForm as cause:
        return CanonicalForm.given_up(condition, str(cause))
    except isl.Error:
        return CanonicalForm.given_up(condition, f"isl needs more than {MAX_OPERATIONS:,} operations for it")


class _Limited:
    """A context in which isl stops with an error after MAX_OPERATIONS; one thread at a time enters it."""

    def __enter__(self) -> None:
        _ISL.acquire()
        isl.DEFAULT_CONTEXT.reset_operations()
        isl.DEFAULT_CONTEXT.set_max_operations(MAX_OPERATIONS)

    def __exit__(self, *_: object) -> None:
        isl.DEFAULT_CONTEXT.set_max_operations(0)
        isl.DEFAULT_CONTEXT.reset_operations()
        _ISL.release()


# Comparisons with data, as unknown truths


def _data(node: Compare) -> Condition:
    """Returns a comparison with data as `a == b`, sides sorted, as `a <= b`, or as the negation of one."""
    op, left, right = node.op, node.left, node.right
    if not expr.arrays(node):
        return node
    if op in ("==", "!="):
        left, right = sorted((left, right), key=sort_key)
        same = Compare("==", left, right)
        return same if op == "==" else expr.Not(same)
    if op in (">=", ">"):
        op, left, right = ("<=" if op == ">=" else "<"), right, left
    return Compare("<=", left, right) if op == "<=" else expr.Not(Compare("<=", right, left))


def _of_choices(condition: Condition, unknowns: list[Compare], frame: Frame) -> CanonicalForm:
    """Returns the three forms of a condition from its sets for every choice of the unknown truth values."""
    unknowns = sorted(unknowns, key=sort_key)
    sets: dict[tuple[bool, ...], isl.Set] = {}
    for chosen, rest in expr.choices(condition, unknowns):
        sets[tuple(chosen.values())] = frame.points(rest)
    alternatives: list[list[Condition]] = [[], [], []]
    covered: dict[tuple[bool | None, ...], isl.Set] = {}
    # from choices that leave most open to those that leave nothing open
    for cube in sorted(
        product((None, True, False), repeat=len(unknowns)), key=lambda cube: -cube.count(None)
    ):
        inside = [points for choice, points in sets.items() if _agrees(choice, cube)]
        common = reduce(isl.Set.intersect, inside)
        left = reduce(isl.Set.subtract, [covered[wider] for wider in covered if _agrees(cube, wider)], common)
        covered[cube] = common
        if left.is_empty():
            continue
        chosen = [(one, value) for one, value in zip(unknowns, cube, strict=True) if value is not None]
        literals = [_literal(unknown, value) for unknown, value in chosen]
        for forms, form in zip(alternatives, _forms(common, frame), strict=True):
            forms.append(expr.all_of(*literals, form))
    return CanonicalForm(*(expr.any_of(*forms) for forms in alternatives), as_written="")


def _agrees(choice: tuple[bool | None, ...], cube: tuple[bool | None, ...]) -> bool:
    """Whether all that `cube` says is so in `choice`."""
    return all(mine is None or mine == own for own, mine in zip(choice, cube, strict=True))


def _literal(unknown: Compare, holds: bool) -> Condition:
    return unknown if holds else Compare(expr.NEGATED[unknown.op], unknown.left, unknown.right)


# Sets of positions


def _forms(points: isl.Set, frame: Frame) -> tuple[Condition, Condition, Condition]:
    """The set as a condition: by pieces, by intervals of keys, by intervals of queries.

    Each is found for the sizes that have points; these are said too where it would hold at others.
    """
    outer_frame, sizes = frame, points.params()
    at_sizes: Condition = expr.Truth(True)
    if not sizes.is_equal(frame.box.params()):
        frame = outer_frame.narrowed(sizes)
        at_sizes = _union(_pieces(frame.box, outer_frame), outer_frame)
    factors = _factors(points, frame) if len(frame.axes) > 1 and points.n_basic_set() > 1 else None
    split = [_grown(one, frame) for one in factors or [points]]
    if all(len(pieces) == 1 for pieces in split):  # one convex set, of however many axes
        split = [[reduce(isl.Set.intersect, [piece for (piece,) in split])]]
    forms = [[_union(pieces, frame) for pieces in split]]
    for inner in (frame.keys, frame.queries):
        intervals = [
            interval_form(form, pieces, inner, frame, lambda points: _union(_grown(points, frame), frame))
            if len(pieces) > 1
            else None
            for form, pieces in zip(forms[0], split, strict=True)
        ]
        forms.append([a or b for a, b in zip(intervals, forms[0], strict=True)])
    by_pieces, rows, columns = (_proved(expr.all_of(*form), at_sizes, points, outer_frame) for form in forms)
    return (rows if _is_plain(rows) else by_pieces), rows, columns


def _is_plain(form: Condition) -> bool:
    """Returns whether a form is a conjunction of comparisons of plain terms."""
    return not any(
        isinstance(node, expr.Or) or (isinstance(node, expr.Arith) and node.op in ("min", "max"))
        for node in expr.walk(form)
    )


def _proved(form: Condition, at_sizes: Condition, points: isl.Set, frame: Frame) -> Condition:
    """Returns the form, restricted to these sizes if necessary, that isl proves equal to the set."""
    for candidate in (form, expr.all_of(at_sizes, form)):
        if frame.points(candidate).is_equal(points):
            return candidate
    raise NoClosedForm("its written form was not proved equal to its set")


def _factors(points: isl.Set, frame: Frame) -> list[isl.Set] | None:
    """The sets of each axis, and of the head, whose product the set is."""
    groups = [[axis.query, axis.key] for axis in frame.axes]
    if HEAD in frame.dims:
        groups.append([HEAD])
    factors: list[isl.Set] = []
    product = frame.box
    for group in groups:
        own_dims = {frame.dims.index(name) for name in group}
        alone = points
        for dim in range(len(frame.dims)):
            if dim not in own_dims:
                alone = alone.eliminate(isl.dim_type.set, dim, 1)
        factors.append(alone & frame.box)
        product = product & alone
    return factors if product.is_equal(points) else None


def written(points: isl.Set, frame: Frame) -> Condition:
    """Returns a condition for the set with few pieces and few bounds."""
    return _proved(_union(_grown(points, frame), frame), expr.Truth(True), points, frame)


def _union(pieces: list[isl.Set], frame: Frame) -> Condition:
    return expr.any_of(*sorted((_piece(piece, frame) for piece in pieces), key=_rank))


def _rank(condition: Condition) -> tuple[int, tuple[tuple[int, int], str]]:
    return len(condition.args) if isinstance(condition, expr.And) else 1, sort_key(condition)


def _piece(piece: isl.Set, frame: Frame) -> Condition:
    return expr.all_of(*piece_conditions(piece, frame.space, frame.box, frame.axes))


def _grown(points: isl.Set, frame: Frame) -> list[isl.Set]:
    """Returns convex pieces, each with as few constraints as possible, none contained in the others."""
    pieces = _pieces(points, frame)
    if len(pieces) <= 1:
        return pieces
    hull = _hull(points, frame)
    if hull is not None:
        return _pieces(hull, frame)
    outside = frame.box - points
    for _ in range(2):
        pieces = _ranked([_widened(piece, pieces, outside, frame) for piece in pieces], frame)
        pieces = _pieces(reduce(isl.Set.union, pieces), frame)
    pieces = _without_covered(_ranked(pieces, frame), frame)
    # what a piece adds to the others says what it is, not the spelling it came from
    for index in reversed(range(len(pieces))):
        others = pieces[:index] + pieces[index + 1 :]
        added = _pieces(reduce(isl.Set.subtract, others, pieces[index] & frame.box), frame)
        if others and len(added) == 1:
            pieces[index] = _widened(added[0], others, outside, frame)
    return _without_covered(_ranked(pieces, frame), frame)  # a wider piece may hold another now


def _hull(points: isl.Set, frame: Frame) -> isl.Set | None:
    """Returns the convex set on a line with exactly these points of the box, if isl's hull is it.

    `q <= 1 and k <= q or q <= 2 and 2 <= k <= q` is `k <= q and 2*q - k <= 2`, two pieces that do not touch.
    """
    if len(frame.axes) > 1 or any(part.dim(isl.dim_type.div) for part in points.get_basic_sets()):
        return None
    hull = isl.Set.from_basic_set(points.polyhedral_hull())
    return hull if (hull & frame.box).is_subset(points) else None


def _pieces(points: isl.Set, frame: Frame) -> list[isl.Set]:
    parts = _simplified(points, frame).get_basic_sets()
    return [_with_congruences(isl.Set.from_basic_set(part), frame) for part in parts]


def _simplified(points: isl.Set, frame: Frame) -> isl.Set:
    return points.compute_divs().coalesce().remove_redundancies().gist(frame.box).coalesce()


def _with_congruences(piece: isl.Set, frame: Frame) -> isl.Set:
    """Returns the piece with `q % 3 == k % 3` as `(q - k) % 3 == 0`."""
    (basic,) = piece.get_basic_sets()
    constraints = basic.get_constraints() if basic.dim(isl.dim_type.div) > 1 else []
    for index, constraint in enumerate(constraints):
        form = bound_of(constraint, frame.space.atoms).form
        counts = [count for atom, count in form.terms if isinstance(atom, Quotient)]
        if not constraint.is_equality() or len(counts) < 2:
            continue
        rest = Linear.of([(a, c) for a, c in form.terms if not isinstance(a, Quotient)], form.constant)
        same = Compare("==", expr.Arith("%", (term_of(rest), expr.Num(gcd(*counts)))), expr.Num(0))
        others = [isl.BasicSet.from_constraint(c) for c in constraints[:index] + constraints[index + 1 :]]
        joined = _meet([*map(isl.Set.from_basic_set, others), frame.points(same)], piece)
        if (joined & frame.box).is_equal(piece & frame.box):
            joined = _simplified(joined, frame)
            if joined.n_basic_set() == 1:
                return _with_congruences(joined, frame)  # of another axis
    return piece


def _ranked(pieces: list[isl.Set], frame: Frame) -> list[isl.Set]:
    """The pieces in order, the shortest to say first."""
    ranks = sorted((_rank(_piece(piece, frame)), index) for index, piece in enumerate(pieces))
    return [pieces[index] for _, index in ranks]


def _widened(piece: isl.Set, pieces: list[isl.Set], outside: isl.Set, frame: Frame) -> isl.Set:
    """Returns the piece without the constraints it does not need to avoid `outside`.

    It is first given those of the others that it implies. What the fewest ask for goes first, so that cuts of
    a rule into overlapping pieces leave no trace.
    """
    kept = _constraints(piece)
    theirs = [_constraints(other) for other in pieces]
    inside = piece & frame.box
    for text, constraint in (item for constraints in theirs for item in constraints.items()):
        if text not in kept and inside.is_subset(constraint):
            kept[text] = constraint
    shared = {text: sum(text in constraints for constraints in theirs) for text in kept}
    for text in sorted(kept, key=lambda text: (shared[text], -len(text), text)):
        others = [constraint for name, constraint in kept.items() if name != text]
        if _meet(others, piece).is_disjoint(outside):
            del kept[text]
    return _meet(kept.values(), piece)


def _constraints(piece: isl.Set) -> dict[str, isl.Set]:
    """Returns the inequalities of a convex set by their text; an equality becomes two."""
    (basic,) = piece.get_basic_sets()
    inequalities: list[isl.Constraint] = []
    for constraint in basic.get_constraints():
        aff = constraint.get_aff()
        both = (aff, aff.neg()) if constraint.is_equality() else (aff,)
        inequalities += [isl.Constraint.inequality_from_aff(one) for one in both]
    sets = [isl.Set.from_basic_set(isl.BasicSet.from_constraint(one)) for one in inequalities]
    return {str(one): one for one in sets}


def _meet(sets: Iterable[isl.Set], like: isl.Set) -> isl.Set:
    common = isl.Set.universe(like.get_space())
    for one in sets:
        common = common & one
    return common


def _without_covered(parts: list[isl.Set], frame: Frame) -> list[isl.Set]:
    """The pieces that hold points no other piece holds, the longest to say looked at first."""
    kept = list(parts)
    for part in reversed(parts):
        rest = part & frame.box
        for other in kept:
            if other is not part:
                rest = rest - other
        if rest.is_empty():
            kept = [other for other in kept if other is not part]
    return kept
