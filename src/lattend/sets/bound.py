"""Bounds on linear forms, and linear forms to isl and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import islpy as isl

from lattend.rules.language.linear import Atom, Linear, Quotient


@dataclass(frozen=True)
class Bound:
    """`form >= 0`, or `form == 0`."""

    form: Linear
    equal: bool


def bound_at(bound: Bound, values: Mapping[str, int]) -> Bound | bool:
    """Returns the bound with values substituted, or its truth value if they decide it."""
    form = bound.form.at(values)
    if form.terms:
        return Bound(form, bound.equal)
    return form.constant == 0 or (form.constant > 0 and not bound.equal)


def any_clause_holds(clauses: Iterable[Iterable[Bound]], values: Mapping[str, Any]) -> Any:
    """Whether all bounds of some clause hold at these values; arrays of values give arrays."""
    holds: Any = False
    for clause in clauses:
        inside: Any = True
        for bound in clause:
            number = bound.form.value(values)
            inside = inside & ((number == 0) if bound.equal else (number >= 0))
        holds = holds | inside
    return holds


def aff_of(form: Linear, space: isl.Space, meaning: Mapping[str, Atom]) -> isl.Aff:
    """Returns a form as an isl function; raises ValueError if an atom is not a coordinate of the space."""
    names = {atom: name for name, atom in meaning.items()}
    local = isl.LocalSpace.from_space(space)
    total = isl.Aff.zero_on_domain(local).add_constant_val(isl.Val(str(form.constant)))
    for atom, coefficient in form.terms:
        if atom in names:
            part = isl.Aff.var_on_domain(local, *space.get_var_dict()[names[atom]])
        elif isinstance(atom, Quotient) and isinstance(atom.by, int):
            part = aff_of(atom.of, space, meaning).scale_down_val(isl.Val(str(atom.by))).floor()
        else:
            raise ValueError(f"{atom} is not a coordinate here")
        total = total.add(part.scale_val(isl.Val(str(coefficient))))
    return total


def bound_of(constraint: isl.Constraint, meaning: Mapping[str, Atom]) -> Bound:
    """The constraint as a form over atoms, its divisions as quotients."""
    names = constraint.get_space().get_var_dict()
    local = constraint.get_local_space()
    terms: list[tuple[Atom, int]] = []
    for name, (kind, dim) in names.items():
        coefficient = _number(constraint.get_coefficient_val(kind, dim))
        if coefficient:
            terms.append((meaning[name], coefficient))
    for dim in range(local.dim(isl.dim_type.div)):
        coefficient = _number(constraint.get_coefficient_val(isl.dim_type.div, dim))
        if coefficient:
            terms.append((quotient_of(local.get_div(dim), meaning), coefficient))
    return Bound(Linear.of(terms, _number(constraint.get_constant_val())), bool(constraint.is_equality()))


def quotient_of(aff: isl.Aff, meaning: Mapping[str, Atom]) -> Quotient:
    """The atom for `floor(aff)`, where aff is a fraction of an integer form."""
    divisor = int(str(aff.get_denominator_val()))
    numerator = aff.scale_val(isl.Val(str(divisor)))
    terms: list[tuple[Atom, int]] = []
    space = aff.get_domain_space()
    for name, (kind, dim) in space.get_var_dict().items():
        where = isl.dim_type.in_ if kind == isl.dim_type.set else kind
        coefficient = _number(numerator.get_coefficient_val(where, dim))
        if coefficient:
            terms.append((meaning[name], coefficient))
    local = aff.get_domain_local_space()
    for dim in range(local.dim(isl.dim_type.div)):
        coefficient = _number(numerator.get_coefficient_val(isl.dim_type.div, dim))
        if coefficient:
            terms.append((quotient_of(local.get_div(dim), meaning), coefficient))
    return Quotient(Linear.of(terms, _number(numerator.get_constant_val())), divisor)


def _number(value: isl.Val) -> int:
    return int(str(value))
