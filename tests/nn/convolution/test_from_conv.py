"""Hard execution is the convolution: outputs, gradients, edges, models; and what errors say."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from nn.convolution.convolutions import as_conv, convolutions, gradients
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

import lattend as lt
from lattend.attend.operators import attention_operator
from lattend.errors import DomainError, NamingError, TensorError
from lattend.nn.convolution import layer as layers
from lattend.nn.convolution import moves

pytestmark = pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
F64 = torch.float64
NOT_A_MODULE: Any = 3


@given(convolutions())
@settings(max_examples=80)
def test_outputs_and_gradients_are_those_of_torch(case: tuple[nn.Conv2d, Tensor]) -> None:
    conv, x = case
    layer = lt.nn.from_conv(conv)
    torch.testing.assert_close(layer(x), conv(x), rtol=0, atol=1e-12)
    found = as_conv(gradients(layer, x), conv)
    for mine, theirs in zip(found, gradients(conv, x), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-11)


@given(convolutions(torch.float32))
@settings(max_examples=40)
def test_float32_agrees_to_a_hundred_thousandth(case: tuple[nn.Conv2d, Tensor]) -> None:
    conv, x = case
    layer = lt.nn.from_conv(conv)
    torch.testing.assert_close(layer(x), conv(x), rtol=0, atol=1e-5)
    found = as_conv(gradients(layer, x), conv)
    for mine, theirs in zip(found, gradients(conv, x), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(("dtype", "atol"), [(torch.bfloat16, 0.03), (torch.float16, 0.004)])
def test_narrow_floats(dtype: torch.dtype, atol: float) -> None:
    torch.manual_seed(0)
    conv, x = nn.Conv2d(3, 5, 3, padding=1).to(dtype), torch.randn(2, 3, 6, 7).to(dtype)
    out = lt.nn.from_conv(conv)(x)
    assert out.dtype == dtype
    torch.testing.assert_close(out, conv(x), rtol=0, atol=atol)


def test_the_kernel_is_not_flipped() -> None:
    """The tap right of the middle sees the pixel to the right: δ = k − q."""
    conv = nn.Conv2d(1, 1, 3, padding=1, bias=False)
    with torch.no_grad():
        conv.weight.zero_()[0, 0, 1, 2] = 1.0
    image = torch.arange(12.0).reshape(1, 1, 3, 4)
    moved = lt.nn.from_conv(conv)(image)
    assert moved[0, 0].tolist() == [[1, 2, 3, 0], [5, 6, 7, 0], [9, 10, 11, 0]]


def test_without_padding_of_zeros_the_edge_is_repeated() -> None:
    conv = nn.Conv2d(1, 1, (1, 5), padding=(0, 2), padding_mode="replicate", bias=False)
    with torch.no_grad():
        conv.weight.zero_()[0, 0, 0, 0] = 1.0
    image = torch.tensor([[[[3.0, 4.0, 5.0]]]])
    assert lt.nn.from_conv(conv)(image).flatten().tolist() == [3, 3, 3]
    assert lt.nn.from_conv(conv, 40.0)(image).flatten().tolist() == [3, 3, 3]


class Operators(TorchDispatchMode):
    """Every operator that runs, those inside attention too."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        inside = {
            attention_operator.FORWARD: attention_operator._forward,
            attention_operator.BACKWARD: attention_operator._backward,
        }.get(func)
        if inside is None:
            return func(*args, **(kwargs or {}))
        with self:
            return inside(*args)


@pytest.mark.parametrize("execution", ["hard", "soft"])
@pytest.mark.parametrize("c_out", [8, 1])  # soft heads: moved first, and projected first
def test_no_convolution_runs(execution: Any, c_out: int) -> None:
    conv = nn.Conv2d(6, c_out, 3, padding=1, stride=2)
    x = torch.randn(2, 6, 7, 7, requires_grad=True)
    with Operators() as seen:
        conv(x).sum().backward()
    assert any("conv" in name for name in seen.names)  # it would be seen
    layer = lt.nn.from_conv(conv, execution=execution)
    with Operators() as seen:
        layer(x).sum().backward()
    attended = {"lattend.attention_forward.default", "lattend.attention_backward.default"} <= set(seen.names)
    assert attended is (execution == "soft")  # one key has weight 1: nothing to attend
    assert any("bmm" in name for name in seen.names)
    assert not [name for name in seen.names if "conv" in name or "im2col" in name or "col2im" in name]


def by_attention(layer: lt.nn.ConvAttention, x: Tensor) -> Tensor:
    """Hard heads as the reference of attention computes them from their rule, query by query."""
    batch, c_in, rows, cols = x.shape
    rule = layer.rule(rows, cols)
    heads, n, m = layer.geometry.heads, rule.values["n"], rule.values["m"]
    values = x.reshape(batch, 1, c_in, m).mT.expand(-1, heads, -1, -1)
    q, k = (torch.randn(batch, heads, size, 1, dtype=x.dtype) for size in (n, m))  # scores do not matter
    out = lt.attention(q, k, values, rule, scale=1.0, kernel="reference")
    found = torch.einsum("bhqi,hio->boq", out, layer.split())
    bias = 0.0 if layer.bias is None else layer.bias[:, None]
    return (found + bias).unflatten(2, layer.geometry.outputs(rows, cols))


@given(convolutions())
@settings(max_examples=25, deadline=None)
def test_hard_heads_are_attention_by_their_rule(case: tuple[nn.Conv2d, Tensor]) -> None:
    conv, x = case
    layer, x = lt.nn.from_conv(conv), x.requires_grad_()
    found, wanted = layer(x), by_attention(layer, x)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
    by = [x, *(p for p in (layer.weight, layer.bias) if p is not None)]
    pairs = (torch.autograd.grad(out.sin().sum(), by) for out in (found, wanted))
    for mine, theirs in zip(*pairs, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("options", [{}, {"stride": 2, "groups": 2}, {"padding_mode": "replicate"}])
def test_images_one_after_another(options: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the copies of all images are too many numbers for a CPU's cache."""
    conv = nn.Conv2d(4, 6, 3, padding=1, **options, dtype=F64)
    layer, x = lt.nn.from_conv(conv), torch.randn(5, 4, 6, 7, dtype=F64)
    monkeypatch.setattr(moves, "CACHED", 2 * 9 * 4 * layer(x)[0, 0].numel())  # two, two and one
    with Operators() as seen:
        found = layer(x)
    assert seen.names.count("aten.baddbmm.default") == 3
    torch.testing.assert_close(found, conv(x), rtol=0, atol=1e-12)
    for mine, theirs in zip(as_conv(gradients(layer, x), conv), gradients(conv, x), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-11)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own, in forward mode
@pytest.mark.parametrize("mode", ["zeros", "replicate"])
def test_hard_heads_have_every_derivative(mode: Any) -> None:
    torch.manual_seed(0)
    conv = nn.Conv2d(2, 2, (2, 3), 2, (1, 2), (1, 2), groups=2, padding_mode=mode, dtype=F64)
    layer, x = lt.nn.from_conv(conv), torch.randn(2, 2, 4, 5, dtype=F64, requires_grad=True)
    assert torch.autograd.gradcheck(layer, x, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda x: layer(x).sin(), x)
    total = lambda x: layer(x).sin().sum()  # noqa: E731
    each = torch.func.vmap(torch.func.grad(total))(x.detach()[:, None])
    assert torch.equal(each[:, 0], torch.func.grad(total)(x.detach()))


def test_each_head_has_one_key_and_its_matrix() -> None:
    conv = nn.Conv2d(4, 6, (2, 3), stride=2, padding=1, dilation=(1, 2), groups=2)
    layer = lt.nn.from_conv(conv)
    assert layer.centres.tolist() == [[y, x] for y in (-1, 0) for x in (-1, 1, 3)]
    split = layer.split()
    assert split.shape == (6, 4, 6)
    for head, (i, j) in enumerate((i, j) for i in range(2) for j in range(3)):
        for group in range(2):
            wanted = conv.weight[3 * group : 3 * group + 3, :, i, j].T
            assert torch.equal(split[head, 2 * group : 2 * group + 2, 3 * group : 3 * group + 3], wanted)
    assert (split != 0).sum() == conv.weight.numel()
    mask = layer.rule(5, 8).mask()  # heads, queries, keys
    assert mask.shape == (6, 3 * 3, 5 * 8)
    for head, (dy, dx) in enumerate(layer.centres.tolist()):
        for query in range(9):
            y, x = 2 * (query // 3) + dy, 2 * (query % 3) + dx
            wanted = [8 * y + x] if 0 <= y < 5 and 0 <= x < 8 else []
            assert mask[head, query].nonzero()[0].tolist() == wanted


def test_it_trains_as_the_convolution_does() -> None:
    torch.manual_seed(1)
    conv, x, y = (
        nn.Conv2d(2, 3, 3, padding=1, dtype=F64),
        torch.randn(4, 2, 5, 5, dtype=F64),
        torch.randn(4, 3, 5, 5),
    )
    layer = lt.nn.from_conv(conv)
    assert {name for name, _ in layer.named_parameters()} == {"weight", "bias"}
    before = layer.weight.detach().clone()
    for module in (conv, layer):
        steps = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
        for _ in range(4):
            steps.zero_grad()
            (module(x) - y).square().mean().backward()
            steps.step()
    torch.testing.assert_close(layer(x), conv(x), rtol=0, atol=1e-12)
    assert (layer.weight - before).abs().max() > 1e-3


def test_it_stands_where_the_convolution_stood() -> None:
    conv = nn.Conv2d(3, 4, 3)
    layer = lt.nn.from_conv(conv).eval()
    image = torch.randn(3, 6, 6)
    torch.testing.assert_close(layer(image), conv(image))  # no batch
    assert layer(torch.randn(0, 3, 6, 6)).shape == (0, 4, 4, 4)
    assert layer(torch.randn(2, 3, 6, 6)).is_contiguous()
    again = lt.nn.from_conv(nn.Conv2d(3, 4, 3))
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again(image), layer(image))
    assert torch.equal(copy.deepcopy(layer)(image), layer(image))
    assert str(layer) == "ConvAttention(3, 4, heads=3×3, execution='hard')"
    frozen = nn.Conv2d(3, 4, 3).requires_grad_(False)
    assert not any(p.requires_grad for p in lt.nn.from_conv(frozen).parameters())


@pytest.mark.parametrize("execution", ["hard", "soft"])
def test_it_compiles_whole_and_for_other_sizes(execution: Any) -> None:
    conv = nn.Conv2d(2, 3, 3, padding=1, stride=2)
    layer = lt.nn.from_conv(conv, execution=execution)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for sizes in ((4, 5), (6, 5)):
        x = torch.randn(2, 2, *sizes)
        torch.testing.assert_close(compiled(x), conv(x), rtol=0, atol=1e-5)


@pytest.mark.parametrize("execution", ["hard", "soft"])
def test_where_the_batch_stays_apart(execution: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, whose kernels hold few numbers a key: here 4, so that channels are cut in three parts."""
    monkeypatch.setattr(layers, "_joins_batch", lambda values: False)
    monkeypatch.setattr(layers, "WIDEST", 4)
    conv = nn.Conv2d(9, 10, 3, padding=1, stride=2, dtype=F64)
    x = torch.randn(3, 9, 5, 6, dtype=F64)
    layer = lt.nn.from_conv(conv, execution=execution)
    torch.testing.assert_close(layer(x), conv(x), rtol=0, atol=1e-12)
    for mine, theirs in zip(as_conv(gradients(layer, x), conv), gradients(conv, x), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-12, atol=1e-11)


def test_shapes_alone() -> None:
    layer = lt.nn.from_conv(nn.Conv2d(300, 400, 3, device="meta"))
    assert layer(torch.empty(2, 300, 6, 7, device="meta")).shape == (2, 400, 4, 5)


@pytest.mark.parametrize("execution", ["hard", "soft"])
def test_under_autocast(execution: Any) -> None:
    conv, x = nn.Conv2d(3, 5, 3, padding=1), torch.randn(1, 3, 6, 6)
    net = nn.Sequential(conv, nn.ReLU(), nn.Conv2d(5, 2, 3))
    heads = lt.nn.from_conv(net, execution=execution)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, wanted = heads(x), net(x)
    torch.testing.assert_close(found.float(), wanted.float(), rtol=0, atol=0.05)
    assert not torch.equal(found.float(), heads(x))  # it was cast
    found.float().sum().backward()
    wanted.float().sum().backward()
    grads = [list(module.parameters())[1].grad for module in (heads, net)]  # of the first bias
    assert grads[0] is not None and grads[0].dtype == torch.float32
    torch.testing.assert_close(*grads, rtol=0.02, atol=0.05)


class Twice(nn.Module):
    """A model that uses one convolution two times."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 2, 3, padding=1)
        self.again = self.first
        self.rest = nn.Sequential(nn.ReLU(), nn.Conv2d(2, 3, 2), nn.Flatten(), nn.Linear(27, 2))

    def forward(self, x: Tensor) -> Tensor:
        return self.rest(self.again(self.first(x)))


def test_all_convolutions_of_a_model() -> None:
    model, x = Twice(), torch.randn(2, 2, 4, 4)
    heads = lt.nn.from_conv(model)
    kinds = [type(module).__name__ for module in heads.modules()]
    assert kinds.count("ConvAttention") == 2 and "Conv2d" not in kinds
    assert heads.get_submodule("first") is heads.get_submodule("again")
    assert isinstance(model.first, nn.Conv2d)  # the given one is as it was
    torch.testing.assert_close(heads(x), model(x), rtol=0, atol=1e-5)


@pytest.mark.parametrize("mode", ["circular", "reflect"])
@pytest.mark.parametrize(("kernel", "padding"), [(3, 0), (3, "valid"), (1, "same")])
def test_without_padding_its_mode_does_not_matter(mode: Any, kernel: int, padding: Any) -> None:
    conv = nn.Conv2d(2, 3, kernel, padding=padding, padding_mode=mode, dtype=F64)
    x = torch.randn(1, 2, 5, 6, dtype=F64)
    torch.testing.assert_close(lt.nn.from_conv(conv)(x), conv(x), rtol=0, atol=1e-12)


class Doubled(nn.Conv2d):
    """A convolution that does more than torch's."""

    def forward(self, input: Tensor) -> Tensor:
        return 2 * super().forward(input)


class Standardised(nn.Conv2d):
    """A convolution that changes its weights on the way."""

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return super()._conv_forward(input, weight - weight.mean(), bias)


def hooked(register: str) -> nn.Conv2d:
    """A convolution with a hook, registered by the method of this name."""
    conv = nn.Conv2d(1, 1, 3)
    getattr(conv, register)(lambda *given: None)
    return conv


def test_a_trained_alpha_is_taken_as_a_number() -> None:
    alpha = torch.tensor(20.0, requires_grad=True)
    for learn in (False, True):
        layer = lt.nn.from_conv(nn.Conv2d(1, 1, 2), alpha, learn=learn)
        assert layer.alpha.is_leaf and layer.alpha.requires_grad is learn
        assert copy.deepcopy(layer).alpha.tolist() == [20.0] * 4


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: lt.nn.from_conv(nn.Conv2d(1, 1, 3, padding=1, padding_mode="reflect")),
            NamingError,
            'conv has padding_mode="reflect", and a head sees the pixel nearest its centre: "replicate", or',
        ),
        (
            lambda: lt.nn.from_conv(
                nn.Sequential(nn.ReLU(), nn.Conv2d(1, 1, 3, 1, 1, padding_mode="circular"))
            ),
            NamingError,
            '1 has padding_mode="circular".* Pad the image yourself, and take padding=0',
        ),
        (
            lambda: lt.nn.from_conv(nn.Conv1d(1, 1, 3)),
            NamingError,
            r"takes nn\.Conv2d, .* not Conv1d: heads",
        ),
        (lambda: lt.nn.from_conv(nn.ConvTranspose2d(1, 1, 3)), NamingError, "not ConvTranspose2d"),
        (lambda: lt.nn.from_conv(NOT_A_MODULE), NamingError, "found no nn.Conv2d: int is no torch module"),
        (lambda: lt.nn.from_conv(nn.Linear(1, 1)), NamingError, "from_conv found no nn.Conv2d in Linear"),
        (
            lambda: lt.nn.from_conv(nn.LazyConv2d(1, 3)),
            TensorError,
            "does not know its channels yet; run it",
        ),
        (
            lambda: lt.nn.from_conv(nn.Conv2d(1, 1, 3), 0.0),
            DomainError,
            "α = 0: it must be positive and finite",
        ),
        (lambda: lt.nn.from_conv(nn.Conv2d(1, 1, 3), -2.0), DomainError, "α = -2: it must be positive"),
        (
            lambda: lt.nn.from_conv(nn.Conv2d(1, 1, 3), 3e38),
            DomainError,
            r"α = 3e\+38 is above 1e\+18",
        ),
        (
            lambda: lt.nn.from_conv(nn.Conv2d(1, 1, 3, dtype=torch.float16), 1e200),
            DomainError,
            r"α = 1e\+200 is above",
        ),
        (
            lambda: lt.nn.from_conv(nn.Sequential(Doubled(1, 1, 3))),
            NamingError,
            "0 is a Doubled with a forward of its own, and heads give what that of nn.Conv2d gives; make",
        ),
        (lambda: lt.nn.from_conv(Doubled(1, 1, 3)), NamingError, "conv is a Doubled with a forward"),
        (lambda: lt.nn.from_conv(Standardised(1, 1, 3)), NamingError, "with a _conv_forward of its own"),
        (lambda: lt.nn.from_conv(hooked("register_forward_hook")), NamingError, "conv has forward hooks"),
        (lambda: lt.nn.from_conv(hooked("register_forward_pre_hook")), NamingError, "has forward hooks"),
        (
            lambda: lt.nn.from_conv(nn.Conv2d(1, 1, 3), torch.ones(4)),
            TensorError,
            r"alpha is one number, or one for each of 9 heads, not \(4,\)",
        ),
        (
            lambda: lt.nn.from_conv(nn.Conv2d(1, 1, 3), execution="firm"),  # pyright: ignore
            NamingError,
            'execution is "hard" or "soft", not \'firm\'',
        ),
    ],
)
def test_what_cannot_be_heads(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("execution", ["hard", "soft"])
@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        (
            (1, 2, 2, 9),
            DomainError,
            r"rows = 2 with padding 1 \+ 1 is less than the 5 the kernel spans; give a larger image, or pad",
        ),
        ((1, 2, 9, 1), DomainError, r"cols = 1 with padding 1 \+ 1 is less than the 5"),
        (
            (1, 3, 9, 9),
            TensorError,
            r"x has 3 channels \(axis 1\), and the layer was made for 2: x is",
        ),
        ((3, 9, 9), TensorError, r"x has 3 channels \(axis 0\)"),
        ((9, 9), TensorError, r"x is \(N, channels, rows, cols\), or without N, not \(9, 9\)"),
    ],
)
def test_images_that_do_not_fit(execution: Any, shape: Any, error: type[Exception], message: str) -> None:
    layer = lt.nn.from_conv(nn.Conv2d(2, 3, 3, dilation=2, padding=1), execution=execution)
    with pytest.raises(error, match=message):
        layer(torch.randn(shape))


def test_the_dtype_must_be_the_weights() -> None:
    with pytest.raises(TensorError, match=r"x is float64 and the weights are float32; cast one: layer\.to"):
        lt.nn.from_conv(nn.Conv2d(1, 1, 1))(torch.zeros(1, 1, 2, 2, dtype=F64))


def test_hard_heads_that_moved_are_refused() -> None:
    layer = lt.nn.from_conv(nn.Conv2d(1, 1, (1, 2)), learn=True)
    assert layer(torch.zeros(1, 1, 3, 3)).shape == (1, 1, 3, 2)  # they stood right before
    with torch.no_grad():
        layer.centres[1, 1] += 0.25
    with pytest.raises(
        DomainError, match=r"head 1 is \(0.0, 1.25\), and hard execution needs the tap's own shift \(0, 1\)"
    ):
        layer(torch.zeros(1, 1, 3, 3))
    layer.execution = "soft"
    assert layer(torch.zeros(1, 1, 3, 3)).shape == (1, 1, 3, 2)


def test_hard_heads_are_one_a_tap() -> None:
    layer = lt.nn.from_conv(nn.Conv2d(1, 1, 2))
    layer(torch.zeros(1, 1, 3, 3))
    layer.centres = torch.cat([layer.centres, layer.centres[:1]])
    with pytest.raises(DomainError, match="there are 5 heads, and hard execution needs one for each of 4"):
        layer(torch.zeros(1, 1, 3, 3))
