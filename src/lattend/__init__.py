"""Lattend: write who attends to whom; get its picture, its exact cost, and its attention.

import lattend as lt

band = lt.rule("k <= q and q - k <= t")
band.count(n=65536, t=255)             # 16744576
lt.attention(q, k, v, band, t=255)     # those pairs and no others
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import on_first_use

if TYPE_CHECKING:
    from lattend import cost as cost
    from lattend import errors as errors
    from lattend import nn as nn
    from lattend import parallel as parallel
    from lattend import rules as rules
    from lattend import study as study
    from lattend.attend.attention import attention as attention
    from lattend.attend.bias import Bias as Bias
    from lattend.attend.decode.kv_cache import KVCache as KVCache
    from lattend.attend.explain.explain import explain as explain
    from lattend.attend.logits import max_logits as max_logits
    from lattend.rules.reader import rule as rule
    from lattend.rules.rule import Rule as Rule

__version__ = "0.2.0"  # read by pyproject.toml too

# Where each public name lives, in the order a reader meets them; loaded when it is first used, so that
# `import lattend` is instant. A folder is its own home.
_HOME = {
    "rule": "lattend.rules.reader",
    "Rule": "lattend.rules.rule",
    "rules": "lattend.rules",
    "attention": "lattend.attend.attention",
    "Bias": "lattend.attend.bias",
    "KVCache": "lattend.attend.decode.kv_cache",
    "max_logits": "lattend.attend.logits",
    "explain": "lattend.attend.explain.explain",
    "cost": "lattend.cost",
    "nn": "lattend.nn",
    "parallel": "lattend.parallel",
    "study": "lattend.study",
    "errors": "lattend.errors",
}

__getattr__, __dir__ = on_first_use(globals(), "lattend", _HOME)
