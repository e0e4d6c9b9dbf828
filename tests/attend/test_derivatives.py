"""Second derivatives and forward mode of the dense kernel: against attention written out in torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

import lattend as lt
from lattend.attend.attention import attention

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
RULES = ("causal", "strided(2)", "k % 3 == 0 and k < q")  # queries of the last one have no key
OPTIONS = ("", "softcap", "sinks", "bias", "padding", "softcap sinks bias padding")
N = 5
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own
Function = Callable[..., tuple[Tensor, Tensor]]


def inputs() -> tuple[Tensor, ...]:
    """q, k, v, the sinks and the slopes of a bias."""
    made = torch.Generator().manual_seed(3)
    shapes = ((2, 2, N, 3), (2, 1, N, 3), (2, 1, N, 2), (2,), (2, 2))
    return tuple(torch.randn(shape, generator=made, dtype=torch.float64).to(DEVICE) for shape in shapes)


def ours(text: str, options: str, kernel: str = "dense") -> Function:
    """attention by a kernel that has all derivatives, with the options."""

    def run(q: Tensor, k: Tensor, v: Tensor, sinks: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
        asked: dict[str, Any] = {"softcap": 1.5} if "softcap" in options else {}
        asked |= {"sinks": sinks} if "sinks" in options else {}
        bias = lt.Bias("slope[batch, head]*slope[0, head]*(q - k)", slope=slopes)
        asked |= {"bias": bias} if "bias" in options else {}
        asked |= {"padding": torch.tensor([N, 3], device=DEVICE)} if "padding" in options else {}
        out, lse = attention(q, k, v, text, scale=0.8, kernel=kernel, return_lse=True, **asked)
        return out, torch.where(lse == -torch.inf, 0, lse)

    return run


def written_out(text: str, options: str) -> Function:
    """The same by the book: the weights of the attended pairs over their sum, zeros where none is."""
    mask = torch.as_tensor(lt.rule(text).mask(n=N), device=DEVICE).expand(2, 1, N, N)
    if "padding" in options:
        real = torch.arange(N) < torch.tensor([[N], [3]])
        mask = mask & real[:, None, None].to(DEVICE)
    places = torch.arange(N, device=DEVICE)

    def run(q: Tensor, k: Tensor, v: Tensor, sinks: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
        scores = 0.8 * q @ k.mT
        if "softcap" in options:
            scores = 1.5 * torch.tanh(scores / 1.5)
        if "bias" in options:
            scores = scores + (slopes * slopes[0])[:, :, None, None] * (places[:, None] - places)
        weights = scores.exp() * mask
        total = weights.sum(-1)
        if "sinks" in options:
            total = total + sinks.exp()[:, None]
        safe = torch.where(total == 0, 1, total)
        return weights @ v / safe[..., None], safe.log()

    return run


def ends(function: Function) -> Callable[..., Tensor]:
    """One number of both results."""

    def run(*given: Tensor) -> Tensor:
        out, lse = function(*given)
        return (out.sin() * torch.arange(2, device=out.device)).sum() + (lse * lse).sum()

    return run


cases = pytest.mark.parametrize(
    ("text", "options"), [(text, options) for text in RULES for options in OPTIONS]
)


@cases
def test_jvp(text: str, options: str) -> None:
    given, along = inputs(), tuple(x.flip(0).cos() for x in inputs())
    found, wanted = (jvp(make(text, options), given, along) for make in (ours, written_out))
    torch.testing.assert_close(found, wanted)


@cases
def test_second_derivatives(text: str, options: str) -> None:
    torch.testing.assert_close(*(second_derivatives(make(text, options)) for make in (ours, written_out)))


def second_derivatives(function: Function) -> list[Tensor]:
    """Along a direction: the derivative of the gradient, by autograd twice and three times."""
    given = [x.requires_grad_() for x in inputs()]
    found: list[Tensor] = []
    end = ends(function)(*given)
    for _ in range(3):
        grads = torch.autograd.grad(end, given, create_graph=True, materialize_grads=True)
        found += grads
        end = torch.cat([(x * made.cos()).flatten() for x, made in zip(grads, inputs(), strict=True)]).sum()
    return found


@pytest.mark.parametrize("options", ["", "softcap sinks bias padding"])
def test_differences(options: str) -> None:
    given = [x.requires_grad_() for x in inputs()]
    how = {"fast_mode": True, "nondet_tol": 0 if DEVICE == "cpu" else 1e-12}  # torch's sums on a GPU
    assert torch.autograd.gradgradcheck(ours("causal", options), given, **how)
    assert torch.autograd.gradcheck(ours("causal", options), given, check_forward_ad=True, **how)


@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("argnum", range(5))
def test_hessian(text: str, argnum: int) -> None:
    made = (hessian(ends(make(text, OPTIONS[-1])), argnums=argnum)(*inputs()) for make in (ours, written_out))
    torch.testing.assert_close(*made)


@pytest.mark.parametrize("argnum", [0, 2, 4])  # queries, values, a learned bias
def test_jacobian_of_a_jacobian(argnum: int) -> None:
    made = [
        jacrev(jacrev(ends(make("causal", OPTIONS[-1])), argnums=argnum), argnums=argnum)(*inputs())
        for make in (ours, written_out)
    ]
    torch.testing.assert_close(*made)
    gradient, slope = (
        grad(ends(make("causal", OPTIONS[-1])), argnums=argnum)(*inputs()) for make in (ours, written_out)
    )
    torch.testing.assert_close(gradient, slope)


def test_jacobian_of_mapped_inputs() -> None:
    q, k, v, sinks, slopes = (torch.stack([x, 2 * x]) for x in inputs())
    found, wanted = (
        vmap(jacfwd(ends(make("causal", "sinks")), argnums=1))(q, k, v, sinks, slopes)
        for make in (ours, written_out)
    )
    torch.testing.assert_close(found, wanted)


def test_hessian_with_arrays_of_the_call() -> None:
    doc, x = torch.tensor([0, 0, 1, 1, 1]), inputs()[0][:1, :1].cpu()
    known, open_ = (lt.rule("k <= q and doc[q] == doc[k]", data={"doc": data}) for data in (doc, None))
    wanted = hessian(lambda x: attention(x, x, x, known, kernel="dense").sin().sum())(x)
    for given in (doc, doc[None]):
        found = hessian(lambda x: attention(x, x, x, open_, kernel="dense", doc=given).sin().sum())(x)  # noqa: B023
        torch.testing.assert_close(found, wanted)


def test_second_derivatives_of_what_queries_and_keys_share() -> None:
    def mixed(x: Tensor) -> Tensor:
        torch.manual_seed(5)
        return attention(x, x, 2 * x, "causal", kernel="dense", dropout=0.4).sin()

    assert torch.autograd.gradgradcheck(mixed, inputs()[0].cpu().double().requires_grad_())


@pytest.mark.parametrize("kernel", [None, "cpu"])
def test_other_kernels_say_which_does(kernel: str | None) -> None:
    q, k, v, sinks, slopes = (x.cpu() for x in inputs())
    with pytest.raises(
        lt.errors.LattendError,
        match=r'no forward-mode derivative: .* or kernel="dense", which has',
    ):
        jvp(lambda q: attention(q, k, v, "causal", kernel=kernel), (q,), (q,))
    with pytest.raises(lt.errors.LattendError, match=r'grad, vjp and jacrev cannot .* kernel="dense"'):
        grad(lambda q: attention(q, k, v, "causal", kernel=kernel).sum())(q)
    grad(lambda x: x.sum() + attention(q, k, v, "causal", kernel=kernel).sum())(
        q
    )  # nothing of it is asked for
    q.requires_grad_()
    for wide, own in ((q, kernel), (q.double(), kernel), (q.double(), "sdpa")):
        out = attention(wide, wide, wide, "causal", kernel=own)
        (slope,) = torch.autograd.grad(out.sum(), q, create_graph=True)
        with pytest.raises(lt.errors.LattendError, match=r'first derivatives only, .* with kernel="dense"'):
            slope.sum().backward()
    bias = lt.Bias("slope[batch, head]*(q - k)", slope=slopes)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(sinks, sinks)
        with pytest.raises(lt.errors.LattendError, match="no forward-mode derivative"):
            attention(q, k, v, "causal", kernel=kernel, sinks=dual)
        attention(q, k, v, "causal", kernel=kernel, bias=bias)  # nothing to differentiate along
