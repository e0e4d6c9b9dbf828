"""Padding: which keys of each batch element are real, as lengths or as a mask.

    padding=torch.tensor([7, 3])                lengths: the first 7 and the first 3 keys are real
    padding=ids != pad_id                       [batch, m], True where a key is real; left, right or anywhere

Both cost O(batch * m): the mask joins the rule's bounds in the kernels, and no pairs are listed.
"""

from __future__ import annotations

import torch
from torch import Tensor

from lattend.attend.bias import dtype_name, shape_text
from lattend.attend.call.attention_call import AttentionCall
from lattend.errors import DomainError, TensorError


def padding_given(padding: object, q: Tensor, k: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """The first real key of each element and the one past its last, [batch, 2], and the mask if given."""
    if padding is None:
        return None, None
    if not isinstance(padding, Tensor):
        raise TensorError(
            f"padding must be a tensor of lengths or a mask, got {type(padding).__name__}; lengths are "
            "padding=torch.tensor([7, 3])"
        )
    if padding.device != q.device:
        raise TensorError(f"padding is on {padding.device} and q on {q.device}; put them on one device")
    batch, keys = q.shape[0], 1
    for size in k.shape[2:-1]:
        keys = keys * size
    if padding.dtype == torch.bool and padding.shape == (batch, keys):
        return _range_of(padding), padding
    if not padding.is_floating_point() and padding.dtype != torch.bool and padding.shape == (batch,):
        return torch.stack([torch.zeros_like(padding), padding], -1).int(), None
    numbers = padding.dtype != torch.bool and padding.shape == (batch, keys)
    raise TensorError(
        f"padding is a mask ({batch}, {keys}) of bool, True where a key is real, or ({batch}) lengths; "
        f"got {shape_text(padding)} of {dtype_name(padding.dtype)}{'; write mask.bool()' if numbers else ''}"
    )


def _range_of(mask: Tensor) -> Tensor:
    """From the first True to past the last; (0, 0) where there is none."""
    places = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    end = (mask * places).amax(-1) if mask.shape[1] else mask.sum(-1)
    first = mask.shape[1] - (mask * places.flip(0)).amax(-1) if mask.shape[1] else end
    return torch.stack([torch.minimum(first, end), end], -1).int()


def check_lengths(key_range: Tensor, keys: int) -> None:
    """Raises where a length is none that these keys can have; on a GPU that would have to be waited for."""
    if key_range.device.type != "cpu" or not key_range.numel():
        return
    least, most = int(key_range.min()), int(key_range.max())
    if least < 0 or most > keys:
        wrong = least if least < 0 else most
        raise DomainError(f"padding has a length of {wrong}, and there are {keys} keys")


def real_keys(call: AttentionCall, keys: int) -> Tensor | None:
    """Which keys of each element are real, [batch, m]; None where all are."""
    if call.key_mask is not None or call.key_range is None:
        return call.key_mask
    places = torch.arange(keys, device=call.key_range.device)
    return (places >= call.key_range[:, :1]) & (places < call.key_range[:, 1:])
