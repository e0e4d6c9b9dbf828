"""Guards: what knows a repeated call sooner than its kind can be made.

torch.compile guards its programs by TensorGuards, which looks at several tensors at once: at their types,
dtypes, devices, sizes, strides, requires_grad and dispatch keys, and whether one is there twice. All else
that belongs to a kind is compared here, so a guarded call is one of the kind that was checked. The reverse
need not hold: a call that no guard knows is looked up by its kind.
"""

# pyright: reportPrivateUsage=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lattend.attend.call.attention_call import OPTIONS
from lattend.attend.kernels.tolerance import uses_tf32
from lattend.attend.replay import host
from lattend.attend.replay.signature import PLAIN, TOLD, is_watched
from lattend.rules.reader import RuleLike
from lattend.rules.rule import Rule

try:
    from torch._C._dynamo.guards import TensorGuards  # pyright: ignore
except ImportError:  # then calls are known by their kinds alone
    TensorGuards: Any = None

Check = Callable[..., bool]  # of the tensors that differ, in order
TRIED = ((2, 11), (2, 14))  # versions of torch, from the first to before the last, whose guards are these


class GuardedCall(NamedTuple):
    """A call that was checked, and all in which another must be like it to run as it did.

    host.cpp reads these fields by their places.
    """

    rule: str  # a text, or the key of a Rule
    numbers: Mapping[str, int] | None  # those of the Rule, None of a text
    values: Mapping[str, int]
    options: tuple[Any, ...]
    same: tuple[int, ...]  # of q, k and v the first that is the same tensor
    check: Check
    aligned: tuple[int, ...]  # addresses of q, k and v, modulo 16
    told: tuple[tuple[Callable[[], Any], Any], ...]  # what torch is asked, and its answer
    run: Callable[..., Any]


def guarded(
    run: Callable[..., Any], qkv: Sequence[Tensor], rule: Any, values: Mapping[str, int],
    options: tuple[Any, ...],
) -> GuardedCall | None:  # fmt: skip
    """The guarded call of a plain one that `run` answers; None where the rule is read anew each time.

    Also where it has a bias, and where torch has no such guards.
    """
    if not OPTIONS.issuperset(map(type, options)):
        return None
    if type(rule) is str:
        written, numbers = rule, None
    elif type(rule) is Rule:
        written, numbers = rule.key, dict(rule.values)
    else:
        return None
    device = qkv[0].device.type
    if not are_trusted(device):
        return None
    same = which_same(*qkv)
    check = guard_of(*(qkv[i] for i in sorted({*same})))
    aligned = tuple(x.data_ptr() % 16 for x in qkv)
    asked: list[Callable[[], Any]] = []
    if any(x.requires_grad for x in qkv):
        asked.append(torch.is_grad_enabled)
    if torch.is_autocast_enabled(device):  # the guard sees whether it is on
        asked.append(partial(torch.get_autocast_dtype, device))
    if device == "cuda":
        asked += TOLD
        asked += [uses_tf32] if any(x.dtype == torch.float32 for x in qkv) else []
    told = tuple((ask, ask()) for ask in asked)
    return GuardedCall(written, numbers, dict(values), options, same, check, aligned, told, run)


def recall_by_python(
    known: Mapping[int, Sequence[GuardedCall]], q: Tensor, k: Tensor, v: Tensor, rule: RuleLike,
    values: Mapping[str, Any], options: tuple[Any, ...],
) -> Callable[..., Any] | None:  # fmt: skip
    """What runs this call, of q, k and v, if it is like a known one; None if it is like none of them.

    Calls are known by how many numbers are in q, so that few of them are compared.
    """
    if not known or type(q) not in PLAIN or type(rule) not in (str, Rule) or is_watched():
        return None
    same, given = which_same(q, k, v), (q, k, v)
    for one in known.get(q.numel(), ()):
        if (
            all(map(_are_alike, options, one.options))
            and _is_rule(one, rule)
            and len(values) == len(one.values)
            and all(type(x) is int and one.values.get(name) == x for name, x in values.items())
            and same == one.same
            and one.check(*(given[i] for i in sorted({*same})))
            and all(x.data_ptr() % 16 == start for x, start in zip(given, one.aligned, strict=True))
            and all(ask() == said for ask, said in one.told)
        ):
            return one.run
    return None


def _is_rule(one: GuardedCall, rule: Any) -> bool:
    if one.numbers is None:
        return type(rule) is str and rule == one.rule
    return type(rule) is Rule and rule.key == one.rule and rule.values == one.numbers


def _are_alike(x: Any, y: Any) -> bool:
    return x is y or (type(x) is type(y) and type(x) in (int, float, str) and x == y)


def which_same(q: Tensor, k: Tensor, v: Tensor) -> tuple[int, int, int]:
    """Of each of three tensors the first that is the same object."""
    return 0, 0 if k is q else 1, 0 if v is q else 1 if v is k else 2


# Torch's guards


def guard_of(*tensors: Tensor) -> Check:
    """Whether others are like these, all different, and torch's dispatcher is told the same now."""
    return TensorGuards(*tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check


def version() -> tuple[int, ...]:
    """Of torch: (2, 13) of 2.13.0."""
    return tuple(map(int, torch.__version__.split(".")[:2]))


@lru_cache(maxsize=8)
def are_trusted(device: str) -> bool:
    """Whether torch has guards that tell apart all that they are asked to, tried once on each device."""
    if TensorGuards is None or not TRIED[0] <= version() < TRIED[1]:
        return False
    try:
        with torch.inference_mode(False), torch.autocast(device, enabled=False):
            return _tell_apart(device)
    except (AttributeError, TypeError, RuntimeError):
        return False


def _tell_apart(device: str) -> bool:
    new = partial(torch.empty_strided, (2, 3), (3, 1), device=device)
    x, y = new(), new()
    check = guard_of(x, y)
    others = [
        new(dtype=torch.bfloat16),
        new(requires_grad=True),
        torch.nn.Parameter(y, requires_grad=False),
        torch._neg_view(y),  # pyright: ignore
        new(device="meta"),
        *(torch.empty_strided(*laid, device=device) for laid in (((2, 4), (4, 1)), ((2, 3), (4, 1)))),
        torch.empty_strided((2, 3, 1), (3, 1, 1), device=device),
    ]
    with torch.autocast(device, dtype=torch.bfloat16):
        cast = check(x, y)
    twice = check(x, x)
    return check(y, x) and not (twice or cast or any(check(x, z) or check(z, y) for z in others))


recall: Callable[..., Callable[..., Any] | None] = recall_by_python
if (_host := host.module()) is not None:
    recall = _host.recall
