"""Lattend: write who attends to whom; get its picture, its exact cost, and its attention.

import lattend as lt

band = lt.rule("k <= q and q - k <= t")
band.count(n=65536, t=255)             # 16744576
lt.attention(q, k, v, band, t=255)     # those squares and no others
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lattend import costs as cost
    from lattend import errors as errors
    from lattend import games as games
    from lattend import generative as generative
    from lattend import layers as nn
    from lattend import rules as rules
    from lattend.comparisons import compare as compare
    from lattend.counts import Count as Count
    from lattend.draw import Picture as Picture
    from lattend.errors import LattendError as LattendError
    from lattend.kernels import Bias as Bias
    from lattend.kernels import Cache as Cache
    from lattend.kernels import attention as attention
    from lattend.kernels.explain import explain as explain
    from lattend.meters import FlopCounter as FlopCounter
    from lattend.plans import plan as plan
    from lattend.rules.rule import Rule as Rule
    from lattend.rules.rule import rule as rule
    from lattend.rules.symbols import maximum as maximum
    from lattend.rules.symbols import minimum as minimum
    from lattend.steering.steer import steer as steer
    from lattend.worked.work import work as work

__version__ = "0.1.0"

# Where each public name lives; loaded when it is first used, so that `import lattend` is instant.
_HOME = {
    "rule": "lattend.rules.rule",
    "Rule": "lattend.rules.rule",
    "rules": "lattend.rules",
    "minimum": "lattend.rules.symbols",
    "maximum": "lattend.rules.symbols",
    "Count": "lattend.counts",
    "Picture": "lattend.draw",
    "attention": "lattend.kernels",
    "Bias": "lattend.kernels",
    "Cache": "lattend.kernels",
    "plan": "lattend.plans",
    "explain": "lattend.kernels.explain",
    "nn": "lattend.layers",
    "cost": "lattend.costs",
    "compare": "lattend.comparisons",
    "FlopCounter": "lattend.meters",
    "work": "lattend.worked.work",
    "steer": "lattend.steering.steer",
    "generative": "lattend.generative",
    "games": "lattend.games",
    "LattendError": "lattend.errors",
    "errors": "lattend.errors",
}
_FOLDERS = {"rules", "errors", "nn", "cost", "generative", "games"}  # public as they are

__all__ = [  # noqa: RUF022  (in the order a reader meets them)
    "rule",
    "Rule",
    "rules",
    "minimum",
    "maximum",
    "Count",
    "Picture",
    "attention",
    "Bias",
    "Cache",
    "plan",
    "explain",
    "nn",
    "cost",
    "compare",
    "FlopCounter",
    "work",
    "steer",
    "generative",
    "games",
    "LattendError",
    "errors",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lattend' has no attribute {name!r}; it has {', '.join(__all__)}")
    module = import_module(_HOME[name])
    value = module if name in _FOLDERS else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
