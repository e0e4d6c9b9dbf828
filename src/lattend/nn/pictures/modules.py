"""What a picture needs of a module: read from its attributes, so that torch is not loaded for it."""

from __future__ import annotations

from typing import Any

from lattend.errors import NamingError


def of_conv(module: Any) -> dict[str, Any] | None:
    """The arguments of `draw_conv` for a Conv2d or the heads made from one; None for anything else."""
    if hasattr(module, "geometry") and hasattr(module, "c_in"):
        found = {"kernel": module.geometry.kernel, **module.geometry.options}
        found |= {"c_in": module.c_in, "c_out": module.c_out}
    elif hasattr(module, "kernel_size") and hasattr(module, "in_channels"):
        if len(module.kernel_size) != 2 or getattr(module, "transposed", False):
            raise NamingError(f"draw_conv draws a Conv2d, not a {type(module).__name__}")
        names = ("stride", "dilation", "padding", "padding_mode")
        found = {name: getattr(module, name) for name in names}
        found |= {"kernel": module.kernel_size, "c_in": module.in_channels, "c_out": module.out_channels}
    else:
        return None
    if module.groups != 1:
        raise NamingError(f"draw_conv draws one group of channels, and this module has {module.groups}")
    return found


def of_grid(module: Any) -> dict[str, Any] | None:
    """The arguments of `draw_grid` for a GridRNN; None for anything else."""
    if not (hasattr(module, "directions") and hasattr(module, "cell")):
        return None
    if module.layers != 1 or module.shift or module.bias:
        raise NamingError("draw_grid draws a GridRNN of one layer, without shift and bias")
    return {"directions": module.directions, "cell": module.cell.name, "c": module.c, "h": module.h}


def refuse(given: dict[str, Any], usual: dict[str, Any]) -> None:
    """Raises where an argument is given that the module has of its own."""
    for name, value in usual.items():
        if given[name] != value:
            raise NamingError(f"a module has its own {name}; leave it out")
