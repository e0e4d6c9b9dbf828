"""What the tour shows beyond rules: each topic as lines of code, a picture, and a fact worked out then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lattend as lt
from lattend.report.numbers import fixed, format_share, scientific
from lattend.study.heads.findings import Findings

Names = dict[str, Any]


@dataclass(frozen=True)
class Topic:
    """Lines of code to show and run, the code of a picture, a fact from what they gave, and a command."""

    name: str
    title: str
    about: str
    lines: tuple[str, ...]
    picture: str
    fact: Callable[[Names], str]
    command: str


@dataclass(frozen=True)
class Visit:
    """A topic that has been run: each line with what it printed, the picture, and the fact."""

    topic: Topic
    printed: tuple[tuple[str, str], ...]
    picture: Any  # drawn as in a notebook: SVG, or HTML where it is no picture
    fact: str


def visit(topic: Topic) -> Visit:
    """Run a topic."""
    names: Names = {"lt": lt}
    printed = tuple((line, run(line, names)) for line in topic.lines)
    return Visit(topic, printed, eval(topic.picture, names), topic.fact(names))


def run(line: str, names: Names) -> str:
    """Run a line, and return what a prompt would print.

    >>> run("2 + 3", {}), run("x = 2", {})
    ('5', '')
    """
    try:
        code = compile(line, "<tour>", "eval")
    except SyntaxError:
        exec(line, names)  # our own lines, so that what is shown is what ran
        return ""
    return str(eval(code, names))


def _costs(names: Names) -> str:
    work = names["layer"].multiply_adds
    wasted = format_share(work.executed / work.needed - 1)
    return (
        f"A counter that ignores the mask reports {work.dense - work.needed:,} multiply-adds "
        f"that nobody needs; kernels in tiles of 64 × 64 waste {wasted}."
    )


def _comparison(names: Names) -> str:
    first, second, *_ = map(str, names["both"].crossovers)
    return f"{first[:1].upper()}{first[1:]}. Yet {second}."


def _convolution(names: Names) -> str:
    off = (names["heads"](names["image"]) - names["conv"](names["image"])).abs().max().item()
    price = names["heads"].same_price("multiplies").status
    return (
        f"Nine attention heads are the convolution, to {scientific(off, 0)}; that both have the same price "
        f"{price} for every image at once."
    )


def _grid(names: Names) -> str:
    depth = names["net"].depth
    return (
        f"n² cells that wait for each other need only {depth} steps: for 512 × 512 pixels {depth(n=512):,}, "
        f"not {512**2:,}."
    )


def _worked(names: Names) -> str:
    *_, last = str(names["checked"]).splitlines()
    return f"A sheet of course notes, checked to its last digit: {last}."


def _steering(names: Names) -> str:
    most = names["between"].weights[1]
    return (
        f"A key half way between two others never gets more than {fixed(most, 4)} of the weight, "
        "whatever the query: its logit is the mean of theirs."
    )


def _elbo(names: Names) -> str:
    exact, model, x = names["exact"], names["model"], names["x"]
    missing = (exact.elbo + exact.gap - model.log_prob(x)).abs().max().item()
    return f"What the bound misses is known exactly: ELBO + gap = log p(x) to {scientific(missing, 0)}."


def _game(names: Names) -> str:
    helps = "Another step size helps" if names["game"].analyse("alternating").best else "No step size helps"
    ahead = names["game"].analyse("extragradient").best
    return (
        f"Both players follow their gradients and come back after {names['orbit'].period} steps, proved in "
        f"fractions. {helps}; looking one step ahead does{'' if ahead else ' not'}."
    )


def _gradients(names: Names) -> str:
    rnn, attention = (names["found"][name] for name in ("rnn", "attention"))
    return (
        f"Through a plain RNN a gradient keeps {fixed(rnn.factor.mean, 2)} of its size at every step: "
        f"over 32 it is {scientific(rnn.mean[-1] / attention.mean[-1], 0)} of what attention has."
    )


def _heads(names: Names) -> str:
    record = names["record"]
    moved = Findings(record).moved
    return (
        f"In {len(record.trained.epochs)} epochs the heads of layer 1 move {fixed(moved[0], 2)} pixels "
        f"and those of layer {len(moved)} {fixed(moved[-1], 2)}. {record.summary()['findings']['grid']}"
    )


def _derivation(names: Names) -> str:
    meant, applied = (line.formula.rpartition(" = ")[2] for line in names["flip"].lines[2:4])
    return f'q − Δ is not q + Δ "by symmetry": the kernel {meant} becomes {applied}.'


TOPICS = (
    Topic(
        "costs",
        "What a layer costs",
        "Counted from the set of products: what is needed, what kernels execute, and what a counter reports "
        "that is blind to masks.",
        (
            'layer = lt.cost.attention("causal", n=4096, heads=32, D_i=4096, D_hid=128)',
            "layer.multiply_adds",
            'lt.cost.attention("causal", heads=1, D_i="d", D_hid="d").multiplies',
        ),
        "lt.cost.decoder(n=4096, d=1024, heads=16, layers=12, vocabulary=50257).draw()",
        _costs,
        "lattend cost attention --rule causal --at n=4096,heads=32,D_i=4096,D_hid=128",
    ),
    Topic(
        "comparison",
        "RNN against attention",
        "n neurons, t steps: where one passes the other is solved for, not read off a chart.",
        (
            'rnn = lt.cost.rnn(steps="t", inputs="n", hidden="n")',
            'bare = lt.cost.attention("full", n="t", heads=1, D_i="n", D_hid="n", projections=None)',
            'whole = lt.cost.attention("full", n="t", heads=1, D_i="n", D_hid="n")',
            'layers = {"rnn": rnn, "scores and mixing": bare, "attention with projections": whole}',
            'both = lt.cost.compare(layers, over="t")',
            "both",
        ),
        "both.draw()",
        _comparison,
        "lattend compare --tables",
    ),
    Topic(
        "convolution",
        "A convolution is nine attention heads",
        "A head that puts all its weight on the pixel q + Δ moves the image by Δ; a kernel is a sum of such "
        "moves.",
        (
            "import torch",
            "conv = torch.nn.Conv2d(3, 8, kernel_size=3, padding=1, dtype=torch.float64)",
            "heads = lt.nn.from_conv(conv)",
            "image = torch.randn(2, 3, 12, 16, dtype=torch.float64)",
            "(heads(image) - conv(image)).abs().max().item()",
            "heads.cost().multiplies",
        ),
        "lt.nn.draw_conv(3, size=8, c_in=16, c_out=32, alpha=2.0, error=1e-3)",
        _convolution,
        "lattend conv --kernel 3",
    ),
    Topic(
        "grid",
        "A recurrent net on an image",
        "Each cell waits for its neighbours on the left and above.",
        ("net = lt.cost.rnn2d()", "net.multiplies", "net.depth", "net.schedule"),
        "lt.nn.draw_grid(8, c=3, h=64)",
        _grid,
        "lattend grid 8 --at c=3,h=64",
    ),
    Topic(
        "gradients",
        "How gradients fade with distance",
        "The size of ∂y_T/∂x_(T−d), exact by autograd, as networks start.",
        (
            'found = lt.study.gradients.measure(["rnn", "attention"], steps=0)',
            'found.claim("rnn vanishes")',
            'found.claim("rnn < attention at 32")',
        ),
        "found.draw()",
        _gradients,
        "lattend gradients",
    ),
    Topic(
        "heads",
        "Heads in training",
        "A network of attention layers learns digits; the centre and the width of every head are recorded.",
        (
            'record = lt.study.heads.train("digits", epochs=5, rate=0.01, control=False)',
            "record.trained.epochs[-1].accuracy",
        ),
        "record.draw_paths()",
        _heads,
        "lattend heads train",
    ),
    Topic(
        "worked",
        "Attention by hand",
        "Every number exact and in decimals; an answer is checked, and what follows from a slip is not a "
        "second one.",
        (
            "tokens = [[1, 2], [2, 0], [0, 1], [1, 1]]",
            "found = lt.study.work(tokens, wq=[[1, 0], [0, 1]], wk=[[1, 0], [0, 0]], wv=[[0, 0], [0, 1]])",
            "found.sums.exact[0][0]",
            'first, second = ".1967 .5343 .0723 .1967".split(), ".1050 .7757 .0142 .1050".split()',
            'checked = found.check({"weights": [first, second, [".25"] * 4, first]})',
            "checked",
        ),
        "found.draw()",
        _worked,
        "lattend work --example",
    ),
    Topic(
        "steering",
        "Which query returns this mixture?",
        "The query, how far off it is, or the proof that there is none.",
        (
            "between = lt.study.steer([[0], [1], [2]], [0, 1, 0])",
            "between.reach",
            "between.certificate.relation",
        ),
        'lt.study.steer([[0, 0], [2, 0], [2, 2], [0, 2], [1, 1]], ["1/3", "2/3", 0, 0, 0]).draw()',
        _steering,
        'lattend steer --keys "0;1;2" --weights 0,1,0',
    ),
    Topic(
        "derivation",
        "A step that every line must survive",
        "Derivations line by line, each line checked in symbols or exact numbers before it is shown.",
        ('flip = lt.study.derive("flip")', "flip.lines[3]", "flip.lines[3].checked"),
        "flip",
        _derivation,
        "lattend derive flip",
    ),
    Topic(
        "elbo",
        "The evidence lower bound",
        "Reconstruction minus KL; in a linear-Gaussian model every term has a closed form.",
        (
            "import torch",
            "model = lt.study.generative.LinearGaussian(torch.randn(6, 2, dtype=torch.float64), noise=0.5)",
            "x = model.sample(3)",
            "q = lt.study.generative.Gaussian(torch.zeros(3, 2, dtype=torch.float64), 0.3)",
            "exact = model.elbo(x, q)",
            "(exact.elbo + exact.gap - model.log_prob(x)).abs().max().item()",
        ),
        "lt.study.generative.draw_linear(model, x, k=(1, 8, 64, 512))",
        _elbo,
        "lattend elbo linear",
    ),
    Topic(
        "game",
        "A game that never settles",
        "One player makes p·q small, the other large.",
        (
            'game = lt.study.games.Game("p*q")',
            "orbit = game.orbit((1, 1), step=1, steps=6)",
            "orbit",
            'game.analyse("extragradient").best',
        ),
        "orbit.draw()",
        _game,
        'lattend game "p*q" --step 1 --start 1,1 --steps 6',
    ),
)
