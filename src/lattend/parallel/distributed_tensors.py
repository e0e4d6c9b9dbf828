"""DTensors in and out: the local shards of those that are cut along their positions."""

# torch.distributed has few types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.distributed.tensor import DTensor, Replicate, Shard

from lattend.errors import TensorError
from lattend.parallel.ranks import AXES

POSITIONS = 2  # the axis of positions in [batch, heads, n, D]; on an image that of rows
AsGiven = Callable[..., Any]


def local_tensors(q: Any, k: Any, v: Any, mesh: Any) -> tuple[tuple[Tensor, Tensor, Tensor], Any, AsGiven]:
    """The local shards of q, k and v, the ranks that share them, and what makes results as q was given."""
    given = [isinstance(x, DTensor) for x in (q, k, v)]
    if not any(given):
        return (q, k, v), mesh, lambda *found: found
    if not all(given):
        name = "qkv"[given.index(False)]
        raise TensorError(
            f"{name} is no DTensor, and others are: give all three as DTensors, or x.to_local() of each"
        )
    for name, x in (("q", q), ("k", k), ("v", v)):
        _check(name, x)
        if x.device_mesh != q.device_mesh or x.placements != q.placements:
            raise TensorError(
                f"{name} is laid out as {x.placements} and q as {q.placements}: redistribute {name} as q is"
            )
    over, placements, whole = q.device_mesh, q.placements, q.shape
    at = [dim for dim, one in enumerate(placements) if isinstance(one, Shard) and one.dim != 0]
    if mesh is None:
        named = tuple(over.mesh_dim_names[dim] for dim in at) if over.mesh_dim_names else ()
        mesh = over[named] if named and named[0] in _image_axes(q) else over.get_group(at[0])

    def as_given(*found: Tensor) -> tuple[Tensor, ...]:
        """Results whose positions are those of q, as DTensors."""
        return tuple(_made(x, over, placements, whole) for x in found)

    return (q.to_local(), k.to_local(), v.to_local()), mesh, as_given


def _image_axes(x: Any) -> dict[str, int]:
    """The axes of an image or a volume by their names; of a line none."""
    axes = x.dim() - 1 - POSITIONS
    return dict(zip(AXES[-axes:], range(POSITIONS, POSITIONS + axes), strict=True)) if axes > 1 else {}


def _check(name: str, x: Any) -> None:
    image, names = _image_axes(x), x.device_mesh.mesh_dim_names or ("",) * x.device_mesh.ndim
    cut = [(one.dim, of) for one, of in zip(x.placements, names, strict=True) if one.is_shard() and one.dim]
    fits = cut and all(dim == image.get(of, POSITIONS) for dim, of in cut)
    once = len({dim for dim, _ in cut}) == len(cut)
    if not (fits and once and all(isinstance(one, (Shard, Replicate)) for one in x.placements)):
        raise TensorError(
            f"{name} is laid out as {x.placements}: positions, axis {POSITIONS}, must be cut along one "
            f"dimension of the mesh, Shard({POSITIONS}), or the axes of an image along those called rows and "
            f"cols, and all else but the batch, Shard(0), be whole: {name}.redistribute(…)"
        )


def _made(x: Tensor, mesh: Any, placements: Any, whole: Any) -> Tensor:
    shape = [*whole[: x.dim()]]
    if x.dim() == len(whole):
        shape[-1] = x.shape[-1]
    stride = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        stride[axis] = stride[axis + 1] * shape[axis + 1]
    sizes: dict[str, Any] = {"shape": tuple(shape), "stride": tuple(stride)}
    return DTensor.from_local(x, mesh, placements, run_check=False, **sizes)
