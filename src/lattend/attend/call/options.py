"""AttentionOptions: the keyword arguments of attention, read once and passed on as one object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from lattend.attend.bias import Bias

if TYPE_CHECKING:
    from lattend.attend.call.fp8 import ScalesLike
    from lattend.attend.call.varlen import CuSeqlens
    from lattend.attend.decode.kv_cache import KVCache


class AttentionOptions(NamedTuple):
    """The options of one call of attention, as its caller wrote them. Their meaning is in `attention`."""

    scale: float | None = None
    scales: ScalesLike | None = None
    bias: Bias | Tensor | None = None
    padding: Tensor | None = None
    cu_seqlens: CuSeqlens | None = None
    softcap: float | None = None
    sinks: Tensor | None = None
    dropout: float = 0
    cache: KVCache | None = None
    return_lse: bool = False
    return_max_logit: bool = False
    kernel: str | None = None
    deterministic: bool = True

    @property
    def in_signature(self) -> tuple[Any, ...]:
        """The options without tensors. Two calls that differ in one of them never share a prepared call."""
        return (
            self.scale, self.softcap, self.dropout, self.kernel, self.deterministic, self.return_lse,
            self.return_max_logit,
        )  # fmt: skip

    def as_keywords(self) -> dict[str, Any]:
        """The options that the caller set, by name."""
        written = {name: value for name, value in self._asdict().items() if value is not None}
        return {name: value for name, value in written.items() if value is not False} | {
            "deterministic": self.deterministic
        }
