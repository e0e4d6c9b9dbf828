"""derive: the derivations by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from lattend.errors import NamingError
from lattend.study.derivations.derivation import Derivation
from lattend.study.derivations.draft import Draft, checked
from lattend.wording import close_names, cut

# The file that each one is written in, in the order they are listed
HOMES: Mapping[str, str] = {
    "causal": "pair_sums",
    "strided": "pair_sums",
    "windowed": "pair_sums",
    "mhsa": "heads",
    "quadratic": "heads",
    "limit": "heads",
    "convolution": "convolutions",
    "flip": "convolutions",
    "naive": "prices",
    "rnn2d": "prices",
    "steer": "mixtures",
    "elbo": "evidence",
    "game": "game_step",
}


def derive(name: str, **options: Any) -> Derivation:
    """The derivation of this name, every line of it checked.

    >>> derivation = derive("causal")
    >>> print(derivation.lines[-1])
    = n(n + 1)/2
    >>> print(derivation.lines[-1].checked)
    proved to be the number of pairs where n >= 0
    """
    return checked(draft(name)(**options))


def draft(name: str) -> Callable[..., Draft]:
    """What writes the derivation of this name down."""
    if name not in HOMES:
        close = close_names(str(name).lower(), HOMES)
        hint = f"did you mean {close[0]}? There" if close else "there"
        raise NamingError(f'there is no derivation "{cut(str(name))}"; {hint} are {", ".join(HOMES)}')
    return getattr(import_module(f"lattend.study.derivations.{HOMES[name]}"), name)


def listed() -> dict[str, str]:
    """Every name and what is derived."""
    return {name: (draft(name).__doc__ or "").splitlines()[0].rstrip(".") for name in HOMES}
