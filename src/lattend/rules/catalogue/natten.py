"""NATTEN's neighbourhood attention on 1 to 3 axes, by its arguments kernel_size, stride, dilation, is_causal.

Along an axis that is not causal the window of kernel_size keys has kernel_size // 2 of them before the query
and is moved inside at the border, so every query has kernel_size keys. Along a causal one it ends at the
query: itself and the kernel_size - 1 before it, and fewer near the start. With a stride, so many queries in a
row share the window of their middle one (of 2 the second), of the last where it is causal. With a dilation
the keys are those with the query's remainder modulo dilation. An axis has at least kernel_size * dilation
positions, as NATTEN demands.

    not causal  causal  stride 2     one axis of 5 positions, kernel_size = 3
    ###..       #....   ###..
    ###..       ##...   ###..
    .###.       ###..   ..###
    ..###       .###.   ..###
    ..###       ..###   ..###

Reference: Hassani et al. 2023, Neighborhood Attention Transformer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast

from lattend.errors import DomainError
from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.catalogue.neighbourhood import neighbourhood
from lattend.rules.language import expr
from lattend.rules.language.parser import parse
from lattend.rules.rule import Rule, check_integer

_AXES = {
    1: (("", "n"),),
    2: (("y", "rows"), ("x", "cols")),
    3: (("z", "depth"), ("y", "rows"), ("x", "cols")),
}


def natten(
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    dilation: int | Sequence[int] = 1,
    is_causal: bool | Sequence[bool] = False,
    axes: Literal[1, 2, 3] = 2,
) -> Rule:
    """NATTEN's window, one number for all axes or one for each: `natten((7, 3), is_causal=(True, False))`.

    >>> natten(3).mask(rows=3, cols=3).sum()  # 9 pixels * 3*3
    np.int64(81)
    >>> (
    ...     natten(3, axes=1).mask(n=5).sum(),
    ...     natten(3, is_causal=True, axes=1).mask(n=5).sum(),
    ... )  # 5*3, 1 + 2 + 3*3
    (np.int64(15), np.int64(12))
    """
    options = kernel_size, stride, dilation, is_causal
    several = [one for one in options if isinstance(one, (tuple, list))]
    number = len(several[0]) if several else axes
    if number not in _AXES:
        raise DomainError(f"natten: there are 1, 2 or 3 axes, got {number}")
    names = "kernel_size", "stride", "dilation", "is_causal"
    sizes, strides, steps, causal = (
        _each(name, one, number) for name, one in zip(names, options, strict=True)
    )
    windows = [*zip(sizes, strides, steps, causal, strict=True)]
    for window in windows:
        _check(*window)
    where = " and ".join(
        f"{length} >= {size * step}"
        for (_, length), size, step in zip(_AXES[number], sizes, steps, strict=True)
    )
    if number == 2 and len({*windows}) == 1 and windows[0][0] % 2 and windows[0][1::2] == (1, False):
        plain = neighbourhood(sizes[0] // 2, None if steps[0] == 1 else steps[0], "shift")
        return replace(plain, where=expr.all_of(plain.where, parse(where)))
    made = [
        (_causal if one else _around)(*axis, size, stride, step)
        for axis, (size, stride, step, one) in zip(_AXES[number], windows, strict=True)
    ]
    about = RuleInfo(
        name="neighbourhood",
        meaning="NATTEN's window along every axis: around the query, moved inside at the border, or causal",
        keys="*".join(f"({keys})" for _, keys in made),
        reference="Hassani et al. 2023, Neighborhood Attention Transformer",
    )
    return entry(" and ".join(condition for condition, _ in made), about, where=where)


def _each(name: str, value: int | Sequence[int], number: int) -> list[int]:
    """Returns one number for each axis."""
    if not isinstance(value, (tuple, list)):
        return [cast(int, value)] * number
    if len(value) != number:
        raise DomainError(f"natten({name}={value!r}): give one number, or one for each of {number} axes")
    return [*value]


def _check(size: int, stride: int, step: int, causal: object) -> None:
    for name, value in (("kernel_size", size), ("stride", stride), ("dilation", step)):
        check_integer(name, value)
        if value < 1:
            raise DomainError(f"natten({name}={value}): {name} is at least 1")
    if causal not in (0, 1):
        raise DomainError(f"natten(is_causal={causal!r}): is_causal is True or False, for each axis")
    if stride > size:
        raise DomainError(
            f"natten(stride={stride}): stride is 1 to kernel_size, got {stride} with kernel_size {size}"
        )


def _causal(a: str, length: str, size: int, stride: int, step: int) -> tuple[str, str]:
    """Returns the condition of a causal axis, and its number of keys."""
    if stride == 1:
        far = (size - 1) * step
        apart = f" and (q{a} - k{a}) % {step} == 0" if step > 1 else ""
        return f"k{a} <= q{a} and q{a} - k{a} <= {far}{apart}", f"min(q{a} // {step}, {size - 1}) + 1"
    query, key, last, group = _grouped(a, length, step)
    leader = f"min({_first(query, stride)} + {stride - 1}, {last})"
    window = f"k{a} <= q{a} and {leader} - {size - 1} <= {key}"
    return f"{group}{window}", f"{query} - max({leader} - {size - 1}, 0) + 1"


def _around(a: str, length: str, size: int, stride: int, step: int) -> tuple[str, str]:
    """Returns the condition of an axis whose window is moved inside at the border, and its number of keys."""
    before, after = size // 2, (size - 1) // 2
    query, key, last, group = _grouped(a, length, step)
    leader = query if stride == 1 else f"{_first(query, stride)} + {stride // 2}"
    end = f"{length} - {1 + after}" if step == 1 else f"{last} - {after}"
    window = f"min({leader}, {end}) - {before} <= {key} <= max({leader}, {before}) + {after}"
    return f"{group}{window}", f"min({last} + 1, {size})"


def _grouped(a: str, length: str, step: int) -> tuple[str, str, str, str]:
    """The query, the key and the last position as counted within the query's dilation group; who is in it."""
    if step == 1:
        return f"q{a}", f"k{a}", f"{length} - 1", ""
    last = f"({length} - 1 - q{a} % {step}) // {step}"
    return f"q{a} // {step}", f"k{a} // {step}", last, f"q{a} % {step} == k{a} % {step} and "


def _first(query: str, stride: int) -> str:
    """Returns the first query that has the same window."""
    return f"{query} // {stride} * {stride}"
