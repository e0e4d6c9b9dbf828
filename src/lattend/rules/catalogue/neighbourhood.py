"""Neighbourhood attention: a pixel attends to the pixels within r of it, along every axis.

2r + 1 keys along an axis: r counts one side, NATTEN's kernel_size is 2r + 1. At the border
`edge="clip"` drops the keys outside, as a padded convolution does; `edge="shift"` moves the window
inside, as NATTEN does, so that every query keeps 2r + 1 keys along an axis that has as many. With a
step (NATTEN's dilation) the window takes every step-th pixel: those with the query's remainder modulo
step, so the farthest is r*step away when clipped.

    clip      shift        what the top left pixel of a 4 x 4 image attends to, r = 1
    ##..      ###.
    ##..      ###.
    ....      ###.
    ....      ....

Reference: Hassani et al. 2023, Neighborhood Attention Transformer; Hassani and Shi 2022, Dilated
Neighborhood Attention Transformer.
"""

from __future__ import annotations

from typing import Literal

from lattend.errors import DomainError
from lattend.rules.catalogue.entry import RuleInfo, entry
from lattend.rules.rule import Rule

_SIZE = {"y": "rows", "x": "cols", "z": "depth"}

# One axis of each kind: the condition, and how many keys it admits; a is the axis, size its length
_CONDITION = {
    ("clip", False): "abs(q{a} - k{a}) <= r",
    ("clip", True): "abs(q{a} - k{a}) <= r*step and (q{a} - k{a}) % step == 0",
    ("shift", False): "min(q{a}, {size} - 1 - r) - r <= k{a} <= max(q{a}, r) + r",
    ("shift", True): "q{a} % step == k{a} % step and "
    "min(q{a} // step, ({size} - 1 - q{a} % step) // step - r) - r <= k{a} // step "
    "<= max(q{a} // step, r) + r",
}
_KEYS = {
    ("clip", False): "(min(q{a}, r) + 1 + min({size} - 1 - q{a}, r))",
    ("clip", True): "(min(q{a} // step, r) + 1 + min(({size} - 1 - q{a}) // step, r))",
    ("shift", False): "min({size}, 2*r + 1)",
    ("shift", True): "min(({size} - 1 - q{a} % step) // step + 1, 2*r + 1)",
}


def neighbourhood(
    r: int | None = None,
    step: int | Literal["step"] | None = None,
    edge: Literal["clip", "shift"] = "clip",
    axes: Literal[2, 3] = 2,
) -> Rule:
    """The pixels within r along every axis: `abs(qy - ky) <= r and abs(qx - kx) <= r`.

    `step="step"` leaves the step symbolic, a number binds it, None is every pixel.

    >>> neighbourhood(r=1).mask(rows=3, cols=3).sum()  # (2 + 3 + 2)**2
    np.int64(49)
    """
    if edge not in ("clip", "shift"):
        raise DomainError(f'neighbourhood(edge={edge!r}): edge is "clip" or "shift"')
    if axes not in (2, 3):
        raise DomainError(f"neighbourhood(axes={axes!r}): an image has 2 axes, a volume 3")
    if isinstance(step, str) and step != "step":
        raise DomainError(f'neighbourhood(step={step!r}): give a number, "step" or None')
    kind = (edge, step is not None)
    names = "zyx"[-axes:]
    text = " and ".join(_CONDITION[kind].format(a=a, size=_SIZE[a]) for a in names)
    about = RuleInfo(
        name="neighbourhood",
        meaning="a pixel attends to the pixels within r of it along every axis"
        + (", every step-th one" if step is not None else "")
        + ("; at the border the window moves inside" if edge == "shift" else "; keys outside are dropped"),
        keys="*".join(_KEYS[kind].format(a=a, size=_SIZE[a]) for a in names),
        reference="Hassani et al. 2023, Neighborhood Attention Transformer",
        aliases=(
            "neighborhood(r, step, edge)",
            "natten(kernel_size = 2*r + 1, stride, dilation = step, is_causal)",
        ),
        elsewhere=('NATTEN: kernel_size = 2*r + 1, dilation = step, windows moved inside (edge="shift")',),
    )
    return entry(text, about, where="r >= 0", r=r, step=None if isinstance(step, str) else step)
