"""Sizes of a Jacobian by input position, exactly: one backward pass for all outputs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def jacobian_sizes(network: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """‖∂y/∂xᵢ‖ for each position i [batch, n], of y = network(x), x [batch, n, width] → y [batch, outputs].

    The length of a Jacobian is the root of the sum of its squared entries. Every sequence is copied once for
    each output, and copy j asks for the gradient of output j: as sequences of a batch do not mix, a single
    backward pass gives all rows of all Jacobians.

    >>> jacobian_sizes(lambda x: 3 * x[:, 0] + 4 * x[:, 1].flip(-1), torch.zeros(1, 3, 2))  # √2 times 3, 4, 0
    tensor([[4.2426, 5.6569, 0.0000]])
    """
    with torch.no_grad():
        outputs = network(x[:1]).shape[-1]
    copies = x.detach().repeat_interleave(outputs, 0).requires_grad_()
    y = network(copies).unflatten(0, (len(x), outputs))
    (found,) = torch.autograd.grad(y.diagonal(dim1=1, dim2=2).sum(), copies)
    return found.unflatten(0, (len(x), outputs)).square().sum((1, 3)).sqrt()


def by_distance(sizes: Tensor, distances: Tensor) -> Tensor:
    """The root mean square of the sizes [batch, n] at each distance, from 0 to the greatest.

    >>> by_distance(torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([1, 0, 1]))  # √((9 + 4)/2) at 1
    tensor([1.0000, 2.5495])
    """
    squares = sizes.square().mean(0)
    many = torch.bincount(distances)
    return (torch.zeros(len(many), dtype=sizes.dtype).index_add(0, distances, squares) / many).sqrt()
