"""Space: the coordinates in which a rule is affine.

A position on an axis with a symbolic modulus w is split, `q = w*(q // w) + q % w`, and so are the
sizes and parameters compared with it. isl then sees two coordinates where the user sees one. Names
inside isl carry a prefix (v_ whole, b_ block, o_ offset), so that none can be a keyword of isl.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import islpy as isl

from lattend.rules.language.linear import Atom, Linear, Quotient, Remainder, atom_value


@dataclass(frozen=True)
class Space:
    """Names of parameters and of set dimensions, and which of them are split by which modulus."""

    parameters: tuple[str, ...]
    dims: tuple[str, ...]
    split: Mapping[str, str]

    def splitting(self, name: str, modulus: str) -> Space:
        """The same space with one more name split."""
        return replace(self, split={**self.split, name: modulus})

    def of_parameters(self) -> Space:
        """The space of its parameters alone."""
        return Space(self.parameters, (), {n: w for n, w in self.split.items() if n in self.parameters})

    def renamed(self, names: Mapping[str, str]) -> Space:
        """The same space under other names."""
        return Space(
            tuple(names.get(name, name) for name in self.parameters),
            tuple(names.get(name, name) for name in self.dims),
            {names.get(name, name): names.get(w, w) for name, w in self.split.items()},
        )

    def joined(self, other: Space) -> Space | None:
        """Returns a space with the parameters of both, or None if they split a name differently."""
        for name in self.parameters:
            if name in other.parameters and self.split.get(name) != other.split.get(name):
                return None
        parameters = tuple(dict.fromkeys(self.parameters + other.parameters))
        return Space(parameters, (), {**self.split, **other.split})

    def coordinates(self, names: tuple[str, ...]) -> list[tuple[str, Atom]]:
        """The isl name and the meaning of each coordinate of these names."""
        coordinates: list[tuple[str, Atom]] = []
        for name in names:
            if name in self.split:
                modulus = self.split[name]
                coordinates.append((f"b_{name}", Quotient(Linear(((name, 1),)), modulus)))
                coordinates.append((f"o_{name}", Remainder(Linear(((name, 1),)), modulus)))
            else:
                coordinates.append((f"v_{name}", name))
        return coordinates

    def coordinates_at(self, values: Mapping[str, int]) -> dict[Atom, int]:
        """The coordinates of these names at numbers: n = 21 and w = 4 are n // w = 5 and n % w = 1, and w."""
        return {
            atom: atom_value(atom, values)
            for name in self.parameters
            if name in values
            for _, atom in self.coordinates((name,))
        }

    @cached_property
    def atoms(self) -> dict[str, Atom]:
        """The atom that each isl name stands for."""
        return dict(self.coordinates(self.parameters + self.dims))

    @cached_property
    def isl(self) -> isl.Space:
        space = isl.Space.create_from_names(
            isl.DEFAULT_CONTEXT,
            set=[name for name, _ in self.coordinates(self.dims)],
            params=[name for name, _ in self.coordinates(self.parameters)],
        )
        return space

    @cached_property
    def zero(self) -> isl.PwAff:
        return isl.PwAff.from_aff(isl.Aff.zero_on_domain(isl.LocalSpace.from_space(self.isl)))

    @cached_property
    def universe(self) -> isl.Set:
        return isl.Set.universe(self.isl)

    def coordinate(self, isl_name: str) -> isl.PwAff:
        """One coordinate as a function on the space."""
        kind, dim = self.isl.get_var_dict()[isl_name]
        return isl.PwAff.from_aff(isl.Aff.var_on_domain(isl.LocalSpace.from_space(self.isl), kind, dim))

    def constant(self, value: int) -> isl.PwAff:
        return self.zero + value

    @cached_property
    def context(self) -> isl.Set:
        """The conditions of splitting: offsets lie in 0 … w - 1, and w is at least 1."""
        context = self.universe
        for name, modulus in self.split.items():
            if name not in self.parameters + self.dims:
                continue
            size = self.coordinate(f"v_{modulus}")
            offset = self.coordinate(f"o_{name}")
            context &= offset.ge_set(self.zero) & offset.lt_set(size) & size.ge_set(self.constant(1))
        return context
