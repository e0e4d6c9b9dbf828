"""NATTEN's neighbourhood attention by its own arguments: kernel_size, dilation, is_causal, on 1, 2 or 3 axes.

Along an axis that is not causal the window of kernel_size keys (an odd number) lies around the query and is
moved inside at the border, so every query has kernel_size keys. Along a causal one it ends at the query:
itself and the kernel_size - 1 before it, and fewer near the start. With a dilation the keys are those with
the query's remainder modulo dilation.

    not causal  causal       one axis of 5 positions, kernel_size = 3
    ###..       #....
    ###..       ##...
    .###.       ###..
    ..###       .###.
    ..###       ..###

Reference: Hassani et al. 2023, Neighborhood Attention Transformer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from lattend.errors import DomainError
from lattend.rules.catalogue.entry import entry
from lattend.rules.catalogue.neighbourhood import neighbourhood
from lattend.rules.rule import About, Rule, check_integer

_AXES = {
    1: (("", "n"),),
    2: (("y", "rows"), ("x", "cols")),
    3: (("z", "depth"), ("y", "rows"), ("x", "cols")),
}


def natten(
    kernel_size: int | Sequence[int],
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
    several = [given for given in (kernel_size, dilation, is_causal) if isinstance(given, (tuple, list))]
    number = len(several[0]) if several else axes
    if number not in _AXES:
        raise DomainError(f"natten: there are 1, 2 or 3 axes, got {number}")
    sizes, steps = _each("kernel_size", kernel_size, number), _each("dilation", dilation, number)
    causal = _each("is_causal", is_causal, number)
    for size, step, one in zip(sizes, steps, causal, strict=True):
        _check(size, step, one)
    if number == 2 and len({*sizes}) == len({*steps}) == 1 and not any(causal):
        return neighbourhood(sizes[0] // 2, None if steps[0] == 1 else steps[0], "shift")
    made = [
        _causal(*axis, size, step) if one else _around(*axis, size // 2, step)
        for axis, size, step, one in zip(_AXES[number], sizes, steps, causal, strict=True)
    ]
    about = About(
        name="neighbourhood",
        meaning="NATTEN's window along every axis: around the query, moved inside at the border, or causal",
        keys="*".join(f"({keys})" for _, keys in made),
        reference="Hassani et al. 2023, Neighborhood Attention Transformer",
    )
    return entry(" and ".join(condition for condition, _ in made), about)


def _each(name: str, given: int | Sequence[int], number: int) -> list[int]:
    """One of these for each axis."""
    if not isinstance(given, (tuple, list)):
        return [cast(int, given)] * number
    if len(given) != number:
        raise DomainError(f"natten({name}={given!r}): give one number, or one for each of {number} axes")
    return [*given]


def _check(size: int, step: int, causal: object) -> None:
    check_integer("kernel_size", size)
    check_integer("dilation", step)
    if causal not in (0, 1):
        raise DomainError(f"natten(is_causal={causal!r}): is_causal is True or False, for each axis")
    if size < 1 or (size % 2 == 0 and not causal):
        raise DomainError(
            f"natten(kernel_size={size}): kernel_size is odd, 2*r + 1, unless the axis is causal"
        )
    if step < 1:
        raise DomainError(f"natten(dilation={step}): dilation is at least 1")


def _causal(a: str, _: str, size: int, step: int) -> tuple[str, str]:
    """The condition of a causal axis, and how many keys it admits."""
    far = (size - 1) * step
    apart = f" and (q{a} - k{a}) % {step} == 0" if step > 1 else ""
    return f"k{a} <= q{a} and q{a} - k{a} <= {far}{apart}", f"min(q{a} // {step}, {size - 1}) + 1"


def _around(a: str, length: str, r: int, step: int) -> tuple[str, str]:
    """The condition of an axis whose window is moved inside, and how many keys it admits."""
    if step == 1:
        window = f"min(q{a}, {length} - {1 + r}) - {r} <= k{a} <= max(q{a}, {r}) + {r}"
        return window, f"min({length}, {2 * r + 1})"
    last = f"({length} - 1 - q{a} % {step}) // {step}"
    window = f"min(q{a} // {step}, {last} - {r}) - {r} <= k{a} // {step} <= max(q{a} // {step}, {r}) + {r}"
    return f"q{a} % {step} == k{a} % {step} and {window}", f"min({last} + 1, {2 * r + 1})"
