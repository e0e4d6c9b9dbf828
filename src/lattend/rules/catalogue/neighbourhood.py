"""Neighbourhood attention: a pixel sees the pixels within r of it, along every axis.

2r + 1 keys along an axis: r counts one side, NATTEN's kernel_size is 2r + 1. At the border
`edge="clip"` drops the keys outside, as a padded convolution does; `edge="shift"` moves the window
inside, as NATTEN does, so that every query keeps 2r + 1 keys along an axis that has as many. With a
dilation d the window takes every d-th pixel, among those with the query's remainder modulo d.

    clip      shift        what the top left pixel of a 4 x 4 image sees, r = 1
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
from lattend.rules.catalogue.entry import entry
from lattend.rules.rule import About, Rule

_SIZE = {"y": "rows", "x": "cols", "z": "depth"}

# One axis of each kind: the condition, and how many keys it admits; a is the axis, size its length
_CONDITION = {
    ("clip", False): "abs(q{a} - k{a}) <= r",
    ("clip", True): "abs(q{a} - k{a}) <= r*d and (q{a} - k{a}) % d == 0",
    ("shift", False): "min(q{a}, {size} - 1 - r) - r <= k{a} <= max(q{a}, r) + r",
    ("shift", True): "q{a} % d == k{a} % d and "
    "min(q{a} // d, ({size} - 1 - q{a} % d) // d - r) - r <= k{a} // d <= max(q{a} // d, r) + r",
}
_KEYS = {
    ("clip", False): "(min(q{a}, r) + 1 + min({size} - 1 - q{a}, r))",
    ("clip", True): "(min(q{a} // d, r) + 1 + min(({size} - 1 - q{a}) // d, r))",
    ("shift", False): "min({size}, 2*r + 1)",
    ("shift", True): "min(({size} - 1 - q{a} % d) // d + 1, 2*r + 1)",
}


def neighbourhood(
    r: int | None = None,
    dilation: int | Literal["d"] | None = None,
    edge: Literal["clip", "shift"] = "clip",
    axes: Literal[2, 3] = 2,
) -> Rule:
    """The pixels within r along every axis: `abs(qy - ky) <= r and abs(qx - kx) <= r`.

    `dilation="d"` leaves the dilation symbolic, a number binds d, None is no dilation.

    >>> neighbourhood(r=1).mask(rows=3, cols=3).sum()  # (2 + 3 + 2)**2
    np.int64(49)
    """
    if edge not in ("clip", "shift"):
        raise DomainError(f'neighbourhood(edge={edge!r}): edge is "clip" or "shift"')
    if axes not in (2, 3):
        raise DomainError(f"neighbourhood(axes={axes!r}): an image has 2 axes, a volume 3")
    if isinstance(dilation, str) and dilation != "d":
        raise DomainError(f'neighbourhood(dilation={dilation!r}): give a number, "d" or None')
    kind = (edge, dilation is not None)
    names = "zyx"[-axes:]
    text = " and ".join(_CONDITION[kind].format(a=a, size=_SIZE[a]) for a in names)
    about = About(
        name="neighbourhood",
        meaning="a pixel sees the pixels within r of it along every axis"
        + (", every d-th one" if dilation is not None else "")
        + ("; at the border the window moves inside" if edge == "shift" else "; keys outside are dropped"),
        keys="*".join(_KEYS[kind].format(a=a, size=_SIZE[a]) for a in names),
        reference="Hassani et al. 2023, Neighborhood Attention Transformer",
    )
    number = dilation if not isinstance(dilation, str) else None
    if number is None:
        return entry(text, about, where="r >= 0", r=r)
    return entry(text, about, where="r >= 0", r=r, d=number)
