"""Bias: values and gradients against plain formulas in torch, ready-made ones, bad input, torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

import pytest
import torch
from given_tensors import each, expected, qkv
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend

import lattend as lt
from lattend import Bias
from lattend.attend.kernels.cpu import kernel as cpu
from lattend.errors import DomainError, LattendError, NamingError, TensorError

KERNELS = ["dense", "cpu", "reference"]
BAND = lt.rule("k <= q and q - k <= t")
HEADS, N, ROWS, COLS = 4, 9, 3, 4


def learned(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    source = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=source, dtype=torch.float64).to(dtype).requires_grad_()


def deltas(n: int = N) -> Tensor:
    """k - q on a line, [n, n]."""
    return torch.arange(n) - torch.arange(n)[:, None]


def image_deltas() -> tuple[Tensor, Tensor]:
    """ky - qy and kx - qx on a small image, [n, n] each."""
    y, x = (a.flatten() for a in torch.meshgrid(torch.arange(ROWS), torch.arange(COLS), indexing="ij"))
    return y - y[:, None], x - x[:, None]


def plain(q: Tensor, k: Tensor, v: Tensor, attended: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """Attention written out, differentiated by torch itself; no row may be empty."""
    wide_k, wide_v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = (q @ wide_k.mT / q.shape[-1] ** 0.5 + bias).masked_fill(~attended, -inf)
    return scores.softmax(-1) @ wide_v, scores.logsumexp(-1)


class Case(NamedTuple):
    """A rule at numbers, a bias of learned tensors, and the same as a formula of them."""

    rule: lt.Rule
    shapes: tuple[tuple[int, ...], ...]
    bias: Callable[..., Bias]
    formula: Callable[..., Tensor]


def quadratic_on_an_image(alpha: Tensor, centre: Tensor) -> Tensor:
    away = torch.stack(image_deltas(), -1) - centre[:, None, None]  # delta - centre, [heads, n, n, 2]
    return -alpha[:, None, None] * (away.square().sum(-1) - centre.square().sum(-1)[:, None, None])


def clamped(far: Tensor, r: int) -> Tensor:
    return far.clamp(-r, r) + r


CASES = {
    "slopes": Case(
        lt.rules.causal(),
        ((HEADS,),),
        lambda slope: Bias("-slope[head]*(q - k)", slope=slope),
        lambda slope: slope[:, None, None] * deltas(),
    ),
    "a table of distances": Case(
        BAND.at(t=3),
        ((HEADS, 4),),
        lambda table: Bias("table[head, q - k]", table=table),
        lambda table: table[:, (-deltas()).clamp(0, 3)],
    ),
    "products, a number and the rule's own": Case(
        BAND.at(t=3),
        ((HEADS,), (N,), ()),
        lambda a, b, c: Bias("a[head]*b[k]*(t - q % 2) + c*(k + n)*b[q] - a[head]*a[head]", a=a, b=b, c=c),
        lambda a, b, c: (
            a[:, None, None] * b * (3 - torch.arange(N) % 2)[:, None]
            + c * (torch.arange(N) + N) * b[:, None]
            - a[:, None, None] ** 2
        ),
    ),
    "relative": Case(
        lt.rules.band(before=6, after=2),
        ((HEADS, 7),),
        Bias.relative,
        lambda table: table[:, clamped(deltas(), 3)],
    ),
    "relative on an image": Case(
        lt.rule("abs(qy - ky) <= 1 or qx == kx"),
        ((HEADS, 3, 5),),
        Bias.relative,
        lambda table: table[:, clamped(image_deltas()[0], 1), clamped(image_deltas()[1], 2)],
    ),
    "quadratic": Case(
        lt.rules.full(),
        ((HEADS,), (HEADS, 1)),
        Bias.quadratic,
        lambda alpha, centre: (
            -alpha[:, None, None] * ((deltas() - centre[:, :, None]) ** 2 - centre[:, :, None] ** 2)
        ),
    ),
    "quadratic on an image": Case(
        lt.rules.neighbourhood(r=1),
        ((HEADS,), (HEADS, 2)),
        Bias.quadratic,
        quadratic_on_an_image,
    ),
    "table": Case(lt.rules.causal(), ((N, N),), Bias.table, lambda table: table),
    "table of heads": Case(BAND.at(t=2), ((HEADS, N, N),), Bias.table, lambda table: table),
}


def sizes(rule: lt.Rule) -> dict[str, int]:
    return {"n": N} if len(rule.axes) == 1 else {"rows": ROWS, "cols": COLS}


def given(case: Case) -> tuple[tuple[Tensor, Tensor, Tensor], list[Tensor], Tensor]:
    """q, k and v with grouped-query heads, the tensors of the bias, and the attention mask."""
    attended = torch.from_numpy(case.rule.mask(**sizes(case.rule)))
    n = N if attended.dim() == 2 else ROWS * COLS
    tensors = [learned(*shape, seed=i) for i, shape in enumerate(case.shapes)]
    return qkv(n=n, dtype=torch.float64, grad=True), tensors, attended.reshape(n, n)


def run(case: Case, x: tuple[Tensor, Tensor, Tensor], bias: Bias, kernel: str) -> tuple[Tensor, Tensor]:
    rule = case.rule if len(case.rule.axes) == 1 else case.rule.at(cols=COLS)
    return lt.attention(*x, rule, bias=bias, return_lse=True, kernel=kernel)


# Values and gradients


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", CASES)
def test_it_is_the_formula(name: str, kernel: str) -> None:
    case = CASES[name]
    x, tensors, attended = given(case)
    found = run(case, x, case.bias(*tensors), kernel=kernel)
    wanted = plain(*x, attended, case.formula(*tensors))
    slopes = [learned(*part.shape, seed=9) for part in wanted]
    grads = (torch.autograd.grad(parts, [*x, *tensors], slopes) for parts in (found, wanted))
    for mine, theirs in zip((*found, *next(grads)), (*wanted, *next(grads)), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-11)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")  # Triton's interpreter
@pytest.mark.parametrize("name", ["relative", "quadratic on an image"])
def test_it_is_the_formula_on_triton(name: str) -> None:
    case = CASES[name]
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, tensors, attended = given(case)
    mine = each(lambda part: part.float().to(device), x)
    theirs = [tensor.detach().float().to(device).requires_grad_() for tensor in tensors]
    found = run(case, mine, case.bias(*theirs), kernel="triton")
    wanted = plain(*x, attended, case.formula(*tensors))
    grads = torch.autograd.grad(found[0].sum(), [*mine, *theirs])
    wants = torch.autograd.grad(wanted[0].sum(), [*x, *tensors])
    for one, other in zip((*found, *grads), (*wanted, *wants), strict=True):
        torch.testing.assert_close(one.cpu().double(), other, rtol=0, atol=2e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["products, a number and the rule's own", "quadratic on an image"])
def test_gradcheck(name: str, kernel: str) -> None:
    case = CASES[name]
    _, tensors, _ = given(case)
    n = N if len(case.rule.axes) == 1 else ROWS * COLS
    x = qkv(n=n, batch=1, heads=HEADS, width=2, value_width=2, dtype=torch.float64)

    def of_tensors(*tensors: Tensor) -> tuple[Tensor, Tensor]:
        return run(case, x, case.bias(*tensors), kernel=kernel)

    assert torch.autograd.gradcheck(of_tensors, tensors, fast_mode=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_are_the_same_on_every_run(dtype: torch.dtype) -> None:
    x = each(lambda part: part.to(dtype), qkv(n=200, grad=True))
    table = learned(HEADS, 31, dtype=torch.float32)

    def grads() -> tuple[Tensor, ...]:
        out = lt.attention(*x, BAND, t=40, bias=Bias.relative(table))
        return torch.autograd.grad(out.float().square().sum(), [*x, table])

    for first, again in zip(grads(), grads(), strict=True):
        assert torch.equal(first, again)


def test_gradients_keep_the_dtype_of_each_tensor() -> None:
    x = qkv(dtype=torch.bfloat16, grad=True)
    alpha, centre = learned(HEADS, dtype=torch.float32), learned(HEADS, 1, dtype=torch.bfloat16)
    out = lt.attention(*x, BAND, t=2, bias=Bias.quadratic(alpha, centre))
    out.float().sum().backward()
    assert alpha.grad is not None and alpha.grad.dtype == torch.float32
    assert centre.grad is not None and centre.grad.dtype == torch.bfloat16


def test_empty_rows_and_no_positions() -> None:
    slope = learned(HEADS)
    bias, before = Bias("slope[head]*k", slope=slope), lt.rule("k < q")
    out, lse = lt.attention(*qkv(dtype=torch.float64), before, bias=bias, return_lse=True)
    assert out[:, :, 0].eq(0).all() and lse[:, :, 0].isneginf().all()
    q, k, v = qkv(dtype=torch.float64)
    none = lt.attention(q[:, :, :0], k[:, :, :0], v[:, :, :0], before, bias=bias)
    (out.sum() + none.sum()).backward()
    assert slope.grad is not None and slope.grad.isfinite().all()


def test_keys_of_their_own_number() -> None:
    q, k, v = qkv(n=4, m=6, dtype=torch.float64)
    table = learned(4, 6)
    attended = torch.from_numpy(BAND.mask(n=4, m=6, t=2))
    wanted, _ = plain(q, k, v, attended, table + 6)
    for bias in (table + 6, Bias("table[q, k] + m", table=table)):
        torch.testing.assert_close(lt.attention(q, k, v, BAND, t=2, m=6, bias=bias), wanted)


# Ready-made


def test_slopes_of_alibi() -> None:
    def slopes(heads: int) -> list[float]:
        return Bias.alibi(heads).tensors["slope"].tolist()

    assert slopes(1) == [2**-8]
    assert slopes(8) == [2**-i for i in range(1, 9)]
    assert slopes(3) == [2**-4, 2**-8, 2**-2]  # two heads, then the first of four
    assert slopes(6) == [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]
    assert slopes(12) == [2 ** (-i) for i in range(1, 9)] + [2 ** (-i / 2) for i in (1, 3, 5, 7)]
    assert slopes(16)[:2] == [2**-0.5, 2**-1]


@pytest.mark.parametrize("rule", [lt.rules.causal(), lt.rules.full()])
def test_alibi(rule: lt.Rule) -> None:
    x = qkv(n=N, dtype=torch.float64)
    slope = 2.0 ** (-8 * torch.arange(1, HEADS + 1, dtype=torch.float64) / HEADS)
    wanted, _ = plain(*x, torch.from_numpy(rule.mask(n=N)), -slope[:, None, None] * deltas().abs())
    torch.testing.assert_close(lt.attention(*x, rule, bias=Bias.alibi(HEADS)), wanted)


def test_a_sharp_head_copies_the_value_at_its_centre() -> None:
    v = torch.arange(9.0).view(1, 1, 3, 3, 1)
    q = torch.zeros(1, 1, 3, 3, 1)
    bias = Bias.quadratic(torch.tensor([30.0]), torch.tensor([[1.0, -1.0]]))  # one row down, one column back
    out = lt.attention(q, q, v, lt.rule("abs(qy - ky) <= 2 and abs(qx - kx) <= 2"), bias=bias)
    torch.testing.assert_close(out[0, 0, :2, 1:, 0], v[0, 0, 1:, :2, 0])


def test_what_it_says() -> None:
    assert repr(Bias("3")) == "<Bias 3>"
    assert repr(Bias("slope*q", slope=2)) == "<Bias slope*q with slope ()>"
    assert repr(Bias.relative(torch.zeros(2, 3, 5))) == (
        "<Bias table[head, min(max(ky - qy + 1, 0), 2), min(max(kx - qx + 2, 0), 4)] with table (2, 3, 5)>"
    )


# A plain tensor


@pytest.mark.parametrize("shape", [(N, N), (HEADS, N, N)])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_tensor(shape: tuple[int, ...], kernel: str) -> None:
    x, table = qkv(n=N, dtype=torch.float64, grad=True), learned(*shape)
    out = lt.attention(*x, BAND, t=3, bias=table, kernel=kernel)
    wanted, _ = plain(*x, torch.from_numpy(BAND.mask(n=N, t=3)), table)
    torch.testing.assert_close(out, wanted)
    grads = (torch.autograd.grad(part.square().sum(), [*x, table]) for part in (out, wanted))
    for mine, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_a_tensor_on_an_image_has_flat_positions() -> None:
    rule, n = lt.rules.neighbourhood(r=1), ROWS * COLS
    x, table = qkv(n=n, dtype=torch.float64), learned(HEADS, n, n)
    attended = torch.from_numpy(rule.mask(rows=ROWS, cols=COLS).reshape(n, n))
    wanted, _ = plain(*x, attended, table)
    torch.testing.assert_close(lt.attention(*x, rule, rows=ROWS, bias=table), wanted)
    image = each(lambda part: part.unflatten(2, (ROWS, COLS)), x)
    torch.testing.assert_close(lt.attention(*image, rule, bias=table), wanted.unflatten(2, (ROWS, COLS)))
    cube = lt.rules.neighbourhood(r=1, axes=3)
    x, table = qkv(n=24, dtype=torch.float64), learned(24, 24)
    attended = torch.from_numpy(cube.mask(depth=2, rows=3, cols=4).reshape(24, 24))
    out = lt.attention(*x, cube, depth=2, cols=4, bias=table)
    torch.testing.assert_close(out, plain(*x, attended, table)[0])


# Bad input


MADE: dict[str, tuple[type[LattendError], str, Callable[[], Bias]]] = {
    "an unknown tensor": (
        NamingError,
        'bias "slope[head]*q" reads slope[head]: give slope=tensor',
        lambda: Bias("slope[head]*q"),
    ),
    "an unused tensor": (
        NamingError,
        'bias "slope[head]*q" does not use table',
        lambda: Bias("slope[head]*q", slope=torch.ones(4), table=torch.ones(4)),
    ),
    "a position as a tensor": (
        NamingError,
        'bias "q*k": k is a position; give the tensor another name',
        lambda: Bias("q*k", k=torch.ones(())),
    ),
    "a size as a tensor": (
        NamingError,
        'bias "n*k": n is a size; give the tensor another name',
        lambda: Bias("n*k", n=3),
    ),
    "too few indices": (
        TensorError,
        'bias "table[head]" reads table[head], an index for each of 1 axes, and table has 2',
        lambda: Bias("table[head]", table=torch.ones(4, 7)),
    ),
    "no index": (
        TensorError,
        "slope has 1 axes: read it at an index, slope[head]",
        lambda: Bias("slope*q", slope=torch.ones(4)),
    ),
    "whole numbers": (
        TensorError,
        "slope holds int64, and a bias is made of floating numbers: slope.float()",
        lambda: Bias("slope[head]*q", slope=torch.ones(4, dtype=torch.int64)),
    ),
    "an entry inside abs": (
        TensorError,
        "bias: slope[head] stands inside abs(slope[head] * q); entries of tensors may be added and "
        "multiplied, and nothing else",
        lambda: Bias("abs(slope[head]*q)", slope=torch.ones(4)),
    ),
    "an entry as an index": (
        TensorError,
        "bias: at[head] stands inside table[at[head]], and an index is made of positions and numbers; look "
        "it up before: picked=table[at], read as picked[head]",
        lambda: Bias("table[at[head]]", table=torch.ones(4), at=torch.ones(4)),
    ),
    "an index of whole numbers": (
        TensorError,
        "look it up before: picked=t[b], read as picked[q]",
        lambda: Bias("t[b[q]]", t=torch.ones(4), b=torch.ones(4, dtype=torch.int64)),
    ),
    "an even table": (
        TensorError,
        "with one entry for each distance -r … r, not (4, 6)",
        lambda: Bias.relative(torch.ones(4, 6)),
    ),
    "a flat table": (
        TensorError,
        "a relative table is [heads, 2r + 1], or [heads, 2ry + 1, 2rx + 1] on an image, with one",
        lambda: Bias.relative(torch.ones(7)),
    ),
    "heads of alpha and centre": (
        TensorError,
        "alpha [heads] and centre [heads, axes], with 1 axis on a line and 2 on an image, not (4) and (3, 2)",
        lambda: Bias.quadratic(torch.ones(4), torch.ones(3, 2)),
    ),
    "a flat centre": (TensorError, "not (4) and (4)", lambda: Bias.quadratic(torch.ones(4), torch.ones(4))),
    "a table of one axis": (
        TensorError,
        "a table of pairs is [n, m], [heads, n, m] or [batch, heads, n, m], not (7)",
        lambda: Bias.table(torch.ones(7)),
    ),
    "no heads": (DomainError, "heads = 0: a bias has at least 1 head", lambda: Bias.alibi(0)),
    "half a head": (DomainError, "heads must be an integer, got 2.5", lambda: Bias.alibi(2.5)),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("name", MADE)
def test_one_clear_error_when_it_is_made(name: str) -> None:
    error, message, make = MADE[name]
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)


def test_text_errors_point_at_the_text() -> None:
    with pytest.raises(lt.errors.TextError) as caught:
        Bias("slope[head]*", slope=torch.ones(4))
    assert caught.value.text == "slope[head]*"


ONES = torch.ones(4)
GIVEN: dict[str, tuple[type[LattendError], str, Any]] = {
    "an unknown name": (
        NamingError,
        'bias "slope[head]*(qq - k)" names qq, which this rule does not have; did you mean q?',
        Bias("slope[head]*(qq - k)", slope=ONES),
    ),
    "a name like no other": (
        NamingError,
        "names window, which this rule does not have; give it as a tensor, Bias(…, window=…)",
        Bias("window*q"),
    ),
    "an image": (
        NamingError,
        "names ky, which this rule does not have; did you mean k?",
        Bias.relative(torch.ones(4, 3, 3)),
    ),
    "a parameter of the rule": (
        NamingError,
        "bias: t is a parameter of the rule too; give the tensor another name",
        Bias("t*q", t=0.5),
    ),
    "too few heads": (
        TensorError,
        "bias: slope has shape (3); slope[head] needs 4 places on axis 0, one for each head",
        Bias("slope[head]*q", slope=ONES[:3]),
    ),
    "too few positions": (
        TensorError,
        "bias: row has shape (4, 6); row[head, q] needs 7 places on axis 1, one for each q",
        Bias("row[head, q]", row=torch.ones(4, 6)),
    ),
    "another device": (
        TensorError,
        "bias: slope is on meta and q on cpu; put them on one device",
        Bias("slope[head]*q", slope=ONES.to("meta")),
    ),
    "a small table": (
        TensorError,
        "bias has shape (6, 7), and a table has one number for each pair: (7, 7), (4, 7, 7) with heads, "
        "or (2, 4, 7, 7) with the batch, where the first two may be 1",
        torch.ones(6, 7),
    ),
    "a table of one head": (TensorError, "bias has shape (1, 7, 7)", torch.ones(1, 7, 7)),
    "a table of another batch": (TensorError, "bias has shape (3, 4, 7, 7)", torch.ones(3, 4, 7, 7)),
    "a table of whole numbers": (
        TensorError,
        "bias holds bool, and a bias is added to the scores, where 1 and 0 mask nothing. Where True means "
        'attend, make it part of the rule: rule & lt.rule("mask[q, k]", data={"mask": None}), called with '
        "mask=bias; or add -inf: torch.zeros(bias.shape).masked_fill(~bias, -torch.inf)",
        torch.ones(7, 7, dtype=torch.bool),
    ),
    "a table elsewhere": (
        TensorError,
        "bias is on meta and q on cpu; put them on one device",
        torch.ones(7, 7, device="meta"),
    ),
    "a number": (
        NamingError,
        "bias is a Bias or a tensor [n, m], [heads, n, m] or [batch, heads, n, m], not float",
        0.5,
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_one_clear_error_when_it_is_given(name: str) -> None:
    error, message, bias = GIVEN[name]
    with pytest.raises(error) as caught:
        lt.attention(*qkv(), BAND, t=2, bias=bias)
    assert message in str(caught.value)


def test_an_array_of_the_rule_is_not_a_tensor_of_the_bias() -> None:
    bias = Bias("doc[q]", doc=torch.ones(7))
    message = "bias: doc is an array of the rule too; give the tensor another name"
    with pytest.raises(NamingError, match=message):
        lt.attention(*qkv(), lt.rules.documents(lengths=[3, 4]), bias=bias)
    with pytest.raises(NamingError, match=message):
        lt.attention(*qkv(), lt.rules.documents(), bias=bias, doc=torch.zeros(7, dtype=torch.int64))


def test_the_library_does_not_take_it() -> None:
    x = qkv(heads=2, value_width=8)
    with pytest.raises(LattendError, match='kernel="sdpa" cannot run this: there is a bias'):
        lt.attention(*x, lt.rules.causal(), bias=Bias.alibi(2), kernel="sdpa")


# torch.compile


def compiled(function: Callable[..., Any], **options: Any) -> tuple[Any, CompileCounterWithBackend]:
    torch._dynamo.reset()
    counter = CompileCounterWithBackend("aot_eager")
    return torch.compile(function, backend=counter, fullgraph=True, **options), counter


SLOPE, DISTANCES = learned(HEADS, dtype=torch.float32), learned(HEADS, 7, dtype=torch.float32)
SQUARES = learned(HEADS, N, N, dtype=torch.float32)
MADE_BEFORE = Bias("-slope[head]*(q - k)*t", slope=SLOPE)


def passed(q: Tensor, k: Tensor, v: Tensor, bias: Any) -> Tensor:
    return lt.attention(q, k, v, BAND, t=3, bias=bias)


PROGRAMS: dict[str, tuple[Callable[..., Tensor], Any, list[Tensor]]] = {
    "an argument": (passed, MADE_BEFORE, [SLOPE]),
    "a ready-made argument": (passed, Bias.relative(DISTANCES), [DISTANCES]),
    "a tensor": (passed, SQUARES, [SQUARES]),
    "closed over": (lambda q, k, v, _: passed(q, k, v, MADE_BEFORE), None, [SLOPE]),
    "made inside": (lambda q, k, v, x: passed(q, k, v, Bias("x[head]*k", x=x)), SLOPE, [SLOPE]),
    "ready-made inside": (lambda q, k, v, x: passed(q, k, v, Bias.relative(x)), DISTANCES, [DISTANCES]),
    "of numbers": (lambda q, k, v, _: passed(q, k, v, Bias.alibi(HEADS)), None, []),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled_whole(name: str) -> None:
    program, given, tensors = PROGRAMS[name]
    x = qkv(n=N, grad=True)
    function, counter = compiled(program)
    found, wanted = function(*x, given), program(*x, given)
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    grads = (torch.autograd.grad(out.square().sum(), [*x, *tensors]) for out in (found, wanted))
    for mine, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
    assert counter.frame_count == 1


def test_no_size_recompiles() -> None:
    function, counter = compiled(passed, dynamic=True)
    for n in (9, 12, 33):
        x, table = qkv(n=n), torch.ones(n, n)
        torch.testing.assert_close(function(*x, table), passed(*x, table))
    assert counter.frame_count == 1
    bias = Bias("-slope[head]*(q - k) + n*t", slope=SLOPE)
    function, counter = compiled(passed, dynamic=True)
    for n in (9, 12, 33):
        torch.testing.assert_close(function(*qkv(n=n), bias), passed(*qkv(n=n), bias))
    assert counter.frame_count == 1


def test_a_layer_that_learns_its_bias() -> None:
    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Parameter(torch.zeros(HEADS, 7))

        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return lt.attention(q, k, v, BAND, t=3, bias=Bias.relative(self.table))

    layer = Layer()
    function, counter = compiled(layer)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        function(*qkv(n=N)).square().sum().backward()
        optimizer.step()
    assert counter.frame_count == 1
    assert (layer.table[:, :4] != 0).all() and (layer.table[:, 4:] == 0).all()  # keys after: never attended


def test_a_bias_on_many_squares_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The CPU holds a bias for some tiles at a time; outputs and gradients do not depend on how many."""
    source = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 2, 96, 4, generator=source, dtype=torch.float64) for _ in range(3))
    table = torch.randn(2, 31, generator=source, dtype=torch.float64)

    def run(rule: lt.Rule) -> list[torch.Tensor]:
        a, b, c, d = (x.clone().requires_grad_() for x in (q, k, v, table))
        out = lt.attention(a, b, c, rule, bias=lt.Bias.relative(d), kernel="cpu")
        return [out, *torch.autograd.grad(out.sin().sum(), (a, b, c, d))]

    for rule in (lt.rules.full(), lt.rules.strided(t=7), lt.rule("(q * 7 + k * 3) % 5 < 3")):
        wanted = run(rule)
        for pairs in (1, 4 * 96 * 32):
            monkeypatch.setattr(cpu, "CHUNK", pairs)
            for found, exact in zip(run(rule), wanted, strict=True):
                torch.testing.assert_close(found, exact)
        monkeypatch.undo()


@pytest.mark.parametrize("kernel", [None, "dense"])
def test_what_is_advised_for_a_boolean_bias_masks(kernel: str | None) -> None:
    given, rule = qkv(dtype=torch.float64), lt.rule("k <= q")
    bias = torch.rand(7, 7, generator=torch.Generator().manual_seed(0)) < 0.5
    both = rule & lt.rule("mask[q, k]", data={"mask": None})
    wanted = expected(*given, bias & torch.from_numpy(rule.mask(n=7)))
    torch.testing.assert_close(lt.attention(*given, both, mask=bias, kernel=kernel), wanted)
    added = torch.zeros(bias.shape).masked_fill(~bias, -torch.inf)
    torch.testing.assert_close(lt.attention(*given, rule, bias=added, kernel=kernel), wanted)


@pytest.mark.parametrize("kernel", ["reference", "dense", "cpu", "triton"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_learned_bias_that_is_not_contiguous(kernel: str) -> None:
    device = "cuda" if kernel == "triton" and torch.cuda.is_available() else "cpu"
    q, k, v = each(lambda x: x.to(device), qkv(value_width=8))
    leaf = torch.randn(7, 7, 4, generator=torch.Generator().manual_seed(0)).to(device)
    grads: list[Tensor] = []
    for table in (leaf.permute(2, 0, 1), leaf.permute(2, 0, 1).contiguous()):  # Swin's, T5's
        learned = table.detach().requires_grad_()
        assert learned.stride() == table.stride()
        out = lt.attention(q, k, v, lt.rule("k <= q"), bias=learned, kernel=kernel)
        grads += torch.autograd.grad(out.square().sum(), learned)
    torch.testing.assert_close(*grads, rtol=0, atol=0)
