"""Price: what the heads of a convolution cost, counted from their rule, and that it is the convolution's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lattend.cost.amount import Amount
from lattend.cost.cost import Cost, single
from lattend.cost.layer import ONE_STEP, Array, Columns, Layer, Statement
from lattend.cost.layers.conv import conv
from lattend.cost.points import points
from lattend.cost.sizes import Size, read_size
from lattend.counts.count import Count
from lattend.counts.verdict import Verdict
from lattend.errors import NamingError
from lattend.nn.convolution.geometry import Along, Geometry

if TYPE_CHECKING:
    from lattend.nn.convolution.layer import ConvAttention

PAIRS = "attended (head, q, k)"
QUANTITIES = ("parameters", "multiplies", "adds")


def price(layer: ConvAttention, rows: Size, cols: Size) -> Cost:
    """The cost of hard execution: an attended pair (head, q, k) is c_in · c_out / groups products.

    A head with one key has weight 1 whatever its score, so that there is nothing to compute before W^(h).
    """
    sizes = {"rows": read_size("rows", rows), "cols": read_size("cols", cols)}
    if isinstance(rows, int) and isinstance(cols, int):
        layer.geometry.outputs(rows, cols)
    fits, attended, large = attended_text(layer.geometry)
    attended_pairs, queries = points(attended, sizes, where=large), points(fits, sizes, where=large)
    seeing = points(attended, sizes, ("qy", "qx"), large)
    heads, depth, c_out = layer.weight.shape
    every = queries * heads
    # the image and which of its pixels and taps take part are the convolution's own
    image, kernel = of_conv(layer, rows, cols).parts[0][1].statements[0].reads
    moved = Array("moved", Columns.of(attended_pairs * layer.c_in, every * layer.c_in))
    weight = Array("W^(h)", Columns.same(Amount.number(heads * depth * c_out)), "parameter", kernel.touched)
    made, filled = Columns.same(queries * c_out), Columns.of(seeing * c_out, queries * c_out)
    out = Array("y", made, touched=filled)
    products, longest = Columns.of(attended_pairs, every) * (depth * c_out), (Amount.number(heads * depth),)
    over = f"{PAIRS}, channel in, channel out"
    steps = [
        Statement("the one key", "copies", moved.size, (image,), moved, over=f"{PAIRS}, channel in"),
        Statement("W^(h)", "products", products, (moved, weight), out, filled, over, longest),
    ]
    parameters = [weight]
    if layer.bias is not None:
        offset = Array("b", Columns.same(Amount.number(c_out)), "parameter")
        parameters.append(offset)
        done = Array("y + b", made)
        steps.append(Statement("bias", "adds", filled, (out, offset), done))
        steps.append(Statement("bias alone", "copies", made - filled, (offset,), done))
    return single(Layer("heads", tuple(steps), tuple(parameters), ONE_STEP, mixes_tokens=heads > 1))


def attended_text(geometry: Geometry) -> tuple[str, str, str]:
    """The queries, the attended pairs, and the images that are large enough: as texts over rows and cols.

    The rule is k = f(head, q), so that an attended pair is a head and a query whose key is there.
    """
    (fits_y, large_y), (fits_x, large_x) = (
        _limits(along, query, size)
        for along, query, size in ((geometry.y, "qy", "rows"), (geometry.x, "qx", "cols"))
    )
    fits = f"{fits_y} and {fits_x}"
    attended = f"{fits} and head < {geometry.heads}"
    if geometry.mode == "zeros":
        row, col = geometry.pixels("qy", "qx")
        attended += f" and 0 <= {row} and {row} < rows and 0 <= {col} and {col} < cols"
    return fits, attended, f"{large_y} and {large_x}"


def _limits(along: Along, query: str, size: str) -> tuple[str, str]:
    """Where a query has an output on an axis, and the sizes at which there is one."""
    padding = along.before + along.after
    return f"{along.stride}*{query} + {along.span} <= {size} + {padding}", f"{size} >= {along.span - padding}"


def same_price(layer: ConvAttention, quantity: str) -> Verdict:
    """Whether the heads' parameters, multiplies or adds are those of `lt.cost.conv`, at all rows and cols."""
    if quantity not in QUANTITIES:
        raise NamingError(f"the price is compared by {', '.join(QUANTITIES)}, not by {quantity!r}")
    mine, theirs = layer.cost().amount(quantity), of_conv(layer).amount(quantity)
    gap = (mine - theirs).count(f"heads - conv ({quantity})")
    claim = f"{quantity} of the heads = {quantity} of the convolution"
    if isinstance(gap, Count):
        return replace(gap.claim("0"), claim=claim)
    if gap:
        return Verdict(claim, "fails", because=f"they differ by {gap}")
    return Verdict(claim, "holds", where="every image that the kernel fits")


def of_conv(layer: ConvAttention, rows: Size = "rows", cols: Size = "cols") -> Cost:
    """`lt.cost.conv` of the convolution the layer stands for."""
    return conv(
        rows=rows,
        cols=cols,
        c_in=layer.c_in,
        c_out=layer.c_out,
        kernel=layer.geometry.kernel,
        **layer.geometry.options,
        groups=layer.groups,
        bias=layer.bias is not None,
    )
