"""Converts a convex set of positions to conditions that do not depend on how isl holds it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import islpy as isl

from lattend.rules.axes import Axis
from lattend.rules.language import expr
from lattend.rules.language.expr import Arith, Compare, CompareOp, Condition, Lookup, Name, Num, Term, Truth
from lattend.rules.language.linear import Atom, Linear, Quotient, atom_names
from lattend.sets.bound import Bound, bound_of
from lattend.sets.space import Space


def piece_conditions(piece: isl.Set, space: Space, box: isl.Set, axes: Sequence[Axis]) -> list[Condition]:
    """The conditions of a convex set within `box`, remainders and windows first, in a fixed order."""
    (basic,) = piece.get_basic_sets()
    bounds = [bound_of(constraint, space.atoms) for constraint in basic.get_constraints()]
    conditions, others = remainder_conditions(bounds, space.dims)
    solved = list(dict.fromkeys(_solved(bound, axes) for bound in others))
    for window in _windows(solved, axes):
        if (piece & box).is_subset(window.points(space, piece)):
            conditions.append(window.condition)
            solved = [bound for bound in solved if bound.form not in window.ends]
    written = [bound_condition(bound, space.dims) for bound in solved]
    return [*sorted(conditions, key=sort_key), *sorted(_both_sides(written), key=sort_key)]


def _both_sides(conditions: list[Condition]) -> list[Condition]:
    """`q - k <= 3` and `k - q <= 3` as `abs(q - k) <= 3`."""
    merged: list[Condition] = []
    for condition in conditions:
        one = condition
        if isinstance(one, Compare) and one.op == "<=" and isinstance(one.left, Arith) and one.left.op == "-":
            other = Compare("<=", Arith("-", one.left.args[::-1]), one.right)
            if other in conditions:
                first = min((one, other), key=sort_key)
                one = Compare("<=", Arith("abs", (first.left,)), one.right)
        merged.append(one)
    return list(dict.fromkeys(merged))


def sort_key(node: Condition | Term) -> tuple[tuple[int, int], str]:
    """Returns the sort key of conditions and terms: shorter first, then queries before keys."""
    names = [part.name for part in expr.walk(node) if isinstance(part, Name)]
    text = expr.term_text(node) if isinstance(node, Name | Num | Arith | Lookup) else expr.text(node)
    return (len(names), len(text)), re.sub(r"\bq", "!", text)


# Remainders

Arcs = list[tuple[int, int]]  # of remainders: the first and the last of each run, in order


def remainder_conditions(
    bounds: Iterable[Bound], names: Sequence[str]
) -> tuple[list[Condition], list[Bound]]:
    """The bounds on remainders as conditions, and the other bounds."""
    residues: dict[tuple[Linear, int], Arcs] = {}
    others: list[Bound] = []
    for bound in bounds:
        read = _remainders(bound, names)
        if read is None:
            others.append(bound)
        else:
            form, modulus, allowed = read
            residues[form, modulus] = _in_both(residues.get((form, modulus), [(0, modulus - 1)]), allowed)
    conditions = [
        c for (form, modulus), allowed in residues.items() for c in _residue_texts(form, modulus, allowed)
    ]
    return conditions, others


def _remainders(bound: Bound, names: Sequence[str]) -> tuple[Linear, int, Arcs] | None:
    """Returns the form, the modulus and the allowed remainders of a bound on one remainder, or None."""
    quotients = [(atom, count) for atom, count in bound.form.terms if isinstance(atom, Quotient)]
    if len(quotients) != 1:
        return None
    (atom, count), by = quotients[0], quotients[0][0].by
    if not isinstance(by, int) or count % by or not all(isinstance(a, str) for a, _ in atom.of.terms):
        return None
    # count * (of // by) = factor * (of - of % by), with the names gone if this is about the remainder alone
    factor = count // by
    rest = bound.form.plus(Linear(((atom, count),)), -1).plus(atom.of, factor)
    if rest.terms:
        return None
    # rest - factor * remainder >= 0, or == 0
    least, most = -(rest.constant // -factor), rest.constant // factor
    if not bound.equal:
        least, most = (0, most) if factor > 0 else (least, by - 1)
    form, sign, shift = _reduced(atom.of, by, names)
    return form, by, _moved(max(least, 0), min(most, by - 1), by, sign, shift)


def _reduced(form: Linear, by: int, names: Sequence[str]) -> tuple[Linear, int, int]:
    """Returns the form with coefficients near 0, the first positive, and its sign and its constant.

    Of two as near the others take the negative one: `(q + k) % 2` is `(q - k) % 2`, a distance.
    """
    first = min(form.terms, key=lambda term: _place(term[0], names), default=("", 1))
    sign = 1 if _near(first[1], by) > 0 else -1
    near = {atom: _near(sign * count, by) for atom, count in form.terms}
    terms = [(atom, -c if 2 * c == by and atom != first[0] else c) for atom, c in near.items()]
    return Linear.of(terms), sign, form.constant


def _near(count: int, by: int) -> int:
    """Returns the equivalent coefficient nearest to 0, the positive one of two."""
    half = (by - 1) // 2
    return (count + half) % by - half


def _place(atom: Atom, names: Sequence[str]) -> tuple[int, str]:
    return (names.index(atom) if isinstance(atom, str) and atom in names else len(names)), str(atom)


def _moved(least: int, most: int, by: int, sign: int, shift: int) -> Arcs:
    """Returns the remainders of form' for which those of `sign * form' + shift` are in least … most."""
    if least > most:
        return []
    first = (least - shift if sign == 1 else shift - most) % by
    last = first + most - least
    return [(first, last)] if last < by else [(0, last - by), (first, by - 1)]


def _in_both(left: Arcs, right: Arcs) -> Arcs:
    met = ((max(a, c), min(b, d)) for a, b in left for c, d in right)
    return sorted((first, last) for first, last in met if first <= last)


def _residue_texts(form: Linear, by: int, allowed: Arcs) -> list[Condition]:
    """Returns conditions for the allowed remainders, as one arc of a circle or as all but some arcs."""
    gaps = [(b + 1, c - 1) for (_, b), (c, _) in itertools.pairwise(allowed) if b + 1 < c]
    if not allowed:
        return [Truth(False)]
    (first, _), (_, last) = allowed[0], allowed[-1]
    if (first, last) != (0, by - 1):
        gaps.append((last + 1, first - 1 + by))
    if len(gaps) == 1:
        return _all_but(form, by, *gaps[0])
    alone = [Compare("!=", Arith("%", (term_of(form), Num(by))), Num(a % by)) for a, b in gaps if a == b]
    return [*alone, *(c for a, b in gaps if a < b for c in _all_but(form, by, a, b))]


def _all_but(form: Linear, by: int, start: int, end: int) -> list[Condition]:
    """The remainders after `end` and before `start`, around the circle."""
    first, last = (end + 1) % by, (start - 1) % by
    term = Arith("%", (term_of(form), Num(by)))
    if first == last:
        return [Compare("==", term, Num(first))]
    if first < last:
        low = [Compare(">=", term, Num(first))] if first else []
        high = [Compare("<=", term, Num(last))] if last < by - 1 else []
        return [*low, *high]
    moved = Linear(form.terms, by - first)
    return [Compare("<=", Arith("%", (term_of(moved), Num(by))), Num(last - first + by))]


# Bounds on keys


def _solved(bound: Bound, axes: Sequence[Axis]) -> Bound:
    """Returns the bound as one on a key, `k + … >= 0` or `-k + … >= 0`, with quotients of queries only.

    64*(k // 64) >= q - 127 says k >= 64*((q - 64) // 64).
    """
    form = _tidy(bound.form)
    if bound.equal:
        return Bound(form if not form.terms or form.terms[0][1] > 0 else form.times(-1), True)
    for axis in axes:
        quotients = [(a, c) for a, c in form.terms if isinstance(a, Quotient) and axis.key in atom_names(a)]
        if len(quotients) != 1 or any(a == axis.key for a, _ in form.terms):
            continue
        atom, count = quotients[0]
        if not isinstance(atom.by, int) or atom.of.terms != ((axis.key, 1),):
            continue
        rest = form.plus(Linear(((atom, count),)), -1)
        by, shift = atom.by, atom.of.constant
        if count > 0:  # k + shift >= by*ceil(-rest / count)
            ceiling = _floor(Linear(constant=count - 1).plus(rest, -1), count)
            solved = Linear(((axis.key, 1),), shift).plus(ceiling, -by)
        else:  # k + shift <= by*floor(rest / -count) + by - 1
            solved = Linear(((axis.key, -1),), by - 1 - shift).plus(_floor(rest, -count), by)
        return Bound(solved, False)
    return Bound(form, False)


def _tidy(form: Linear) -> Linear:
    """The form with the constant of every quotient between 0 and its divisor."""
    total = Linear(constant=form.constant)
    for atom, count in form.terms:
        part = Linear(((atom, 1),))
        if isinstance(atom, Quotient) and isinstance(atom.by, int):
            part = _floor(_tidy(atom.of), atom.by)
        total = total.plus(part, count)
    return total


def _floor(form: Linear, by: int) -> Linear:
    """Returns `form // by` with its divisible part outside, coefficients near 0 and the first positive."""
    if by == 1:
        return form
    out = Linear.of([(a, (c + (by - 1) // 2) // by) for a, c in form.terms], form.constant // by)
    left = form.plus(out, -by)
    if not left.terms:
        return out
    if left.terms[0][1] > 0:
        return out.plus(Linear(((Quotient(left, by), 1),)))
    # e // by is -((by - 1 - e) // by)
    return out.plus(_floor(Linear(constant=by - 1).plus(left, -1), by), -1)


@dataclass(frozen=True)
class _Window:
    """`(q + shift) // size == (k + shift) // size`, and the two bounds on k that say so."""

    axis: Axis
    size: int
    shift: int

    @property
    def condition(self) -> Condition:
        sides = [
            Arith("//", (term_of(Linear(((name, 1),), self.shift)), Num(self.size)))
            for name in (self.axis.query, self.axis.key)
        ]
        return Compare("==", sides[0], sides[1])

    @property
    def _block(self) -> Atom:
        return Quotient(Linear(((self.axis.query, 1),), self.shift), self.size)

    @property
    def ends(self) -> tuple[Linear, Linear]:
        low = Linear.of([(self.axis.key, 1), (self._block, -self.size)], self.shift)
        high = Linear.of([(self.axis.key, -1), (self._block, self.size)], self.size - 1 - self.shift)
        return low, high

    def points(self, space: Space, like: isl.Set) -> isl.Set:
        """Returns the set where it holds."""
        local = isl.LocalSpace.from_space(like.get_space())
        names = like.get_space().get_var_dict()
        blocks: list[isl.PwAff] = []
        for name in (self.axis.query, self.axis.key):
            kind, dim = names[f"v_{name}"]
            aff = isl.Aff.var_on_domain(local, kind, dim).add_constant_val(isl.Val(str(self.shift)))
            blocks.append(isl.PwAff.from_aff(aff.scale_down_val(isl.Val(str(self.size))).floor()))
        return blocks[0].eq_set(blocks[1])


def _windows(bounds: Iterable[Bound], axes: Sequence[Axis]) -> list[_Window]:
    """The windows that some bound is an end of."""
    windows: list[_Window] = []
    for bound in bounds:
        for atom, _ in bound.form.terms:
            for axis in axes:
                if (
                    isinstance(atom, Quotient)
                    and isinstance(atom.by, int)
                    and atom.of.terms == ((axis.query, 1),)
                ):
                    window = _Window(axis, atom.by, atom.of.constant)
                    if bound.form in window.ends and window not in windows:
                        windows.append(window)
    return windows


# Text


def term_of(form: Linear | Quotient) -> Term:
    """The form as a term: positive multiples first, then the negative ones, then the number."""
    if isinstance(form, Quotient):
        inner = _floor(_tidy(form.of), form.by) if isinstance(form.by, int) else form.of
        return term_of(inner)
    ordered = sorted(form.terms, key=lambda item: (item[1] < 0, str(item[0])))
    total: Term | None = None
    for atom, count in ordered:
        one = _atom_term(atom)
        size = one if abs(count) == 1 else Arith("*", (Num(abs(count)), one))
        if total is None:
            total = size if count > 0 else Arith("neg", (size,))
        else:
            total = Arith("+" if count > 0 else "-", (total, size))
    if total is None:
        return Num(form.constant)
    if form.constant:
        total = Arith("+" if form.constant > 0 else "-", (total, Num(abs(form.constant))))
    return total


def _atom_term(atom: Atom) -> Term:
    if isinstance(atom, str):
        return Name(atom)
    by = Name(atom.by) if isinstance(atom.by, str) else Num(atom.by)
    return Arith("//" if isinstance(atom, Quotient) else "%", (term_of(atom.of), by))


def bound_condition(bound: Bound, names: Sequence[str]) -> Condition:
    """Returns a bound as a condition: `k <= q`, `q - k <= 255`, `k >= 3`."""
    form = bound.form
    plus = [(a, c) for a, c in form.terms if c > 0]
    minus = [(a, -c) for a, c in form.terms if c < 0]
    alone = _only_key(form, names) if any(isinstance(a, Quotient) for a, _ in form.terms) else None
    op: CompareOp
    if bound.equal:
        left, right = (term_of(Linear.of(plus)), term_of(Linear.of(minus, -form.constant)))
        if minus and sort_key(right) < sort_key(left):
            left, right = right, left
        return Compare("==", left, right)
    if not minus:  # plus >= -constant
        op, left, right = ">=", Linear.of(plus), Linear(constant=-form.constant)
    elif alone is not None:
        op, left = (">=" if alone[1] > 0 else "<="), Linear(((alone[0], 1),))
        right = form.plus(Linear((alone,)), -1).times(-alone[1])
    elif plus and form.constant == -1 and not any(isinstance(a, Quotient) for a, _ in form.terms):
        op, left, right = "<", Linear.of(minus), Linear.of(plus)
    elif plus and form.constant and len(form.terms) == 2 and all(isinstance(a, str) for a, _ in form.terms):
        op = "<="
        left, right = Linear(form.times(-1).terms), Linear(constant=form.constant)
    elif _is_distance(plus, minus, names):  # q - k <= t + 1
        op, left = "<=", Linear.of([*minus, *((a, -c) for a, c in plus if a in names)])
        right = Linear.of([(a, c) for a, c in plus if a not in names], form.constant)
    else:  # minus <= plus + constant
        op, left, right = "<=", Linear.of(minus), Linear.of(plus, form.constant)
    return Compare(op, term_of(left), term_of(right))


def _is_distance(plus: list[tuple[Atom, int]], minus: list[tuple[Atom, int]], names: Sequence[str]) -> bool:
    """Returns whether a bound limits the distance of two positions by parameters."""
    positions = [(a, c) for a, c in plus if a in names]
    return [c for _, c in positions] == [c for a, c in minus if a in names] == [1] and len(minus) == 1 < len(
        plus
    )


def _only_key(form: Linear, names: Sequence[str]) -> tuple[Atom, int] | None:
    """Returns the last position with coefficient 1 or -1 outside of every quotient, if there is one."""
    positions = [(a, c) for a, c in form.terms if isinstance(a, str) and a in names and abs(c) == 1]
    return max(positions, key=lambda term: names.index(str(term[0])), default=None)
