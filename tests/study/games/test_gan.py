"""The GAN on a ring: its gradients, how samples are judged, runs and their pictures."""

import math
import re

import numpy as np
import pytest
import torch

from lattend.errors import DomainError, NamingError
from lattend.study.games.game import dirac
from lattend.study.games.methods import method_of
from lattend.study.games.modes import Moment, Ring, RingRun, draw_runs
from lattend.study.games.tensors import Net, RingField, ring

SMALL = Ring(hidden=4, batch=16)


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def field(seed=0, dtype=torch.float64):
    """A small field in float64, and the parameters of both players."""
    result = RingField(SMALL, seed)
    result.data, result.noise = result.data.to(dtype), result.noise.to(dtype)
    p, q = (net.start(result.random).to(dtype) for net in (result.generator, result.discriminator))
    return result, p, q


def test_a_net_is_the_same_as_torchs():
    net, random = Net([3, 5, 2]), torch.Generator().manual_seed(1)
    parameters, x = net.start(random), torch.randn(7, 3)
    below, above = torch.nn.Linear(3, 5), torch.nn.Linear(5, 2)
    w1, b1, w2, b2 = parameters.split([15, 5, 10, 2])
    with torch.no_grad():
        for layer, weight, bias in ((below, w1.view(3, 5), b1), (above, w2.view(5, 2), b2)):
            layer.weight.copy_(weight.T)
            layer.bias.copy_(bias)
    assert torch.allclose(net(parameters, x), above(torch.tanh(below(x))), atol=1e-6)


def test_f_is_the_gans_loss():
    result, p, q = field()
    real = torch.sigmoid(result.discriminator(q, result.data))
    made = torch.sigmoid(result.discriminator(q, result.generator(p, result.noise)))
    assert result.value(p, q).item() == pytest.approx((real.log().mean() + (1 - made).log().mean()).item())


def test_gradients_and_penalties_are_differences():
    result, p, q = field()
    down, up = result.gradient(p, q)

    def lengths(p, q):
        down, up = result.gradient(p, q)
        return (down.dot(down) + up.dot(up)).item() / 2, down.dot(down).item() / 2

    to_p, to_q = result.consensus(p, q)
    penalty = result.penalty(p, q)
    small = 1e-5
    for place in (0, 7, len(p) - 1):
        unit = torch.zeros_like(p)
        unit[place] = small
        change = result.value(p + unit, q) - result.value(p - unit, q)
        assert down[place].item() == pytest.approx(change.item() / (2 * small), abs=1e-8)
        change = lengths(p + unit, q)[0] - lengths(p - unit, q)[0]
        assert to_p[place].item() == pytest.approx(change / (2 * small), abs=1e-8)
    for place in (0, 7, len(q) - 1):
        unit = torch.zeros_like(q)
        unit[place] = small
        change = result.value(p, q + unit) - result.value(p, q - unit)
        assert up[place].item() == pytest.approx(change.item() / (2 * small), abs=1e-8)
        more, less = lengths(p, q + unit), lengths(p, q - unit)
        assert to_q[place].item() == pytest.approx((more[0] - less[0]) / (2 * small), abs=1e-8)
        assert penalty[place].item() == pytest.approx((more[1] - less[1]) / (2 * small), abs=1e-8)


def test_methods_step_tensors_as_they_step_numbers():
    result, p, q = field()
    down, up = result.gradient(p, q)
    assert torch.equal(method_of("simultaneous").step(result, (p, q), (0.1, 0.2))[0], p - 0.1 * down)
    new_p, new_q = method_of("alternating").step(result, (p, q), (0.1, 0.2))
    assert torch.equal(new_q, q + 0.2 * up)
    assert torch.equal(new_p, p - 0.1 * result.gradient(p, new_q)[0])
    _, paid = method_of("gradient_penalty", weight=3).step(result, (p, q), (0.1, 0.2))
    assert torch.allclose(paid, q + 0.2 * (up - 3 * result.penalty(p, q)))


class Counted(RingField):
    """Notes whose gradients are asked for."""

    def __init__(self, ring, seed):
        super().__init__(ring, seed)
        self.asked = []

    def gradient(self, p, q, movers="pq"):
        self.asked.append(movers)
        return super().gradient(p, q, movers)


@pytest.mark.parametrize("name", ["alternating", "momentum", "consensus", "gradient_penalty"])
@pytest.mark.parametrize(("first", "turns"), [("p", ["p", "q"]), ("q", ["q", "p"])])
def test_no_gradient_is_computed_in_vain(name, first, turns):
    result, method = Counted(SMALL, 0), method_of(name, first=first)
    p, q = (net.start(result.random) for net in (result.generator, result.discriminator))
    method.step(result, method.start(result, p, q), (0.1, 0.2))
    assert result.asked == turns


def test_who_does_not_move_has_no_gradient():
    result, p, q = field()
    down, up = result.gradient(p, q)
    assert torch.equal(result.gradient(p, q, "p")[0], down) and result.gradient(p, q, "p")[1] == 0
    assert torch.equal(result.gradient(p, q, "q")[1], up) and result.gradient(p, q, "q")[0] == 0
    to_p, to_q = result.consensus(p, q)
    assert torch.equal(result.consensus(p, q, "p")[0], to_p) and torch.equal(
        result.consensus(p, q, "q")[1], to_q
    )


def test_every_step_has_its_own_batch():
    result = RingField(SMALL, 0)
    data, noise = result.data, result.noise
    result.next_batch()
    assert not torch.equal(result.data, data) and not torch.equal(result.noise, noise)


def test_samples_are_judged_by_the_nearest_centre():
    centres = np.array(Ring().centres())
    assert centres[2] == pytest.approx([0, 1])
    clouds = np.repeat(centres[:3], [40, 40, 2], axis=0) + 0.2  # 0.28 from the centre, nearer than 3 * 0.1
    far = np.zeros((18, 2))
    moment = Ring().judge(5, np.concatenate([clouds, far]))
    assert moment.shares[:3] == (0.4, 0.4, 0.02)
    assert (moment.covered, moment.near) == (2, pytest.approx(0.82))  # 0.02 is below 1/32
    assert Ring().judge(5, np.concatenate([clouds + 0.02, far])).covered == 0  # 0.31 away


def test_true_samples_cover_every_mode():
    random = np.random.default_rng(0)
    true = np.array(Ring().centres())[random.integers(8, size=4000)] + 0.1 * random.normal(size=(4000, 2))
    moment = Ring().judge(0, true)
    assert moment.covered == 8
    assert moment.near == pytest.approx(1 - math.exp(-4.5), abs=0.005)  # a Gaussian's share within 3 widths


def test_equal_seeds_give_equal_runs():
    first, again, other = (ring(steps=20, seed=seed, ring=SMALL, looks=2) for seed in (3, 3, 4))
    assert first.moments == again.moments != other.moments
    assert [moment.step for moment in first.moments] == [0, 10, 20]
    assert first.json()["covered"] == [[m.step, m.covered] for m in first.moments]


def test_the_penalty_covers_all_modes():
    run = ring(steps=600, looks=6)
    assert run.moments[-1].covered == 8
    assert run.finished and run.method == "gradient penalty, weight 1"
    assert run.covered_from is not None and run.covered_from < 600


def test_a_run_that_leaves_says_so():
    run = ring("simultaneous", step=10**40, steps=20, ring=SMALL, looks=20)
    assert not run.finished
    assert run.covered_from is None
    assert re.fullmatch(r"left for infinity after step \d+", run.sentence())
    assert "lost" in draw_runs([run, run]).facts[0][1]


def moments(*counts):
    samples = ((0.0, 1.0), (1.0, 0.0))
    return tuple(Moment(10 * at, (0.1,) * n + (0.0,) * (8 - n), samples) for at, n in enumerate(counts))


def run(*counts, method="simultaneous", seed=0):
    return RingRun(Ring(), method, (1, 1), 10 * (len(counts) - 1), seed, moments(*counts), 1.0)


def test_covered_from_is_the_last_return():
    assert run(8, 3, 8, 8).covered_from == 20
    assert run(8, 8, 7).covered_from is None
    assert run(3, 8, 5, 8).covered_from is None  # at the last look alone
    assert run(1, 8, 8).sentence() == "8 of 8 modes at the end, 80% of samples on them; all from step 10 on"
    assert run(1, 5, 3, 4).sentence().endswith("3 to 4 in the second half")


def test_the_picture_of_runs():
    runs = [run(1, 8, 8, 8), run(0, 4, 8, 8, seed=1), run(1, 3, 2, 2, method="momentum, mass -1/2")]
    figure = draw_runs(runs)
    assert dict(figure.facts)["simultaneous"] == (
        "seeds 0, 1: 8, 8 modes at the end, 80%, 80% of samples on them; "
        "all stay covered in 2 of 2 runs, from step 10, 20 on"
    )
    assert [(line.name, line.points) for line in figure.charts[0].lines] == [
        ("simultaneous", [(0.0, 0.5), (10.0, 6.0), (20.0, 8.0), (30.0, 8.0)]),
        ("momentum", [(0.0, 1.0), (10.0, 3.0), (20.0, 2.0), (30.0, 2.0)]),
    ]
    assert [panel.cells.shape for panel in figure.panels] == [(8, 4), (8, 4)]
    assert [plane.title for plane in figure.charts[1:]] == [
        *("simultaneous", "step 10: 8 modes", "step 20: 8 modes", "step 30: 8 modes"),
        *("momentum", "step 10: 3 modes", "step 20: 2 modes", "step 30: 2 modes"),
    ]
    assert figure.svg().startswith("<svg")
    for width in (40, 80):
        assert max(map(len, figure.terminal(width, colour=False, encoding="utf-8").splitlines())) <= width
    assert figure.json()["runs"][0]["covered_from"] == 10


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ring(steps=0), "training has 1 to 1,000,000 steps, got 0"),
        (lambda: ring(step=0), "a step must be above 0, got 0: nobody would move"),
        (lambda: ring(steps="6"), "training has 1 to 1,000,000 steps, got '6'"),  # pyright: ignore
        (lambda: ring(steps=5, looks=0), "training has 1 to 1,000,000 looks, got 0"),
        (lambda: ring(seed="a"), "seed must be a whole number from −2⁶³ to 2⁶⁴ − 1, got 'a'"),  # pyright: ignore
        (
            lambda: ring(seed=2**70),
            "seed must be a whole number from −2⁶³ to 2⁶⁴ − 1, got 118059162071741130",
        ),
        (lambda: ring(seed=True), "seed must be a whole number from −2⁶³ to 2⁶⁴ − 1, got True"),
        (lambda: Ring(modes=0), "a ring's modes must be a whole number from 1 on, got 0"),
        (lambda: Ring(hidden=2.5), "a ring's hidden must be a whole number from 1 on, got"),  # pyright: ignore
        (lambda: Ring(width=-1), "a ring's width must be a number above 0, got -1"),
        (lambda: draw_runs([]), "a picture of runs needs one or more that were looked at"),
    ],
)
def test_wrong_values(make, said):
    with pytest.raises(DomainError, match=re.escape(said)):
        make()


@pytest.mark.parametrize(("loss", "slope"), [("linear", 1.0), ("logistic", 0.5)])
def test_dirac_turns_about_its_equilibrium(loss, slope):
    game = dirac(loss)
    t = 0.7 * -0.4
    inner = -slope if loss == "linear" else -1 / (1 + math.exp(-t))  # g'(t)
    assert game.gradient((0.7, -0.4)) == pytest.approx((-0.4 * inner, 0.7 * inner))
    assert game.gradient((0, 0)) == (0, 0)
    plain = game.orbit((1, 1), step="0.2", steps=200, method="simultaneous").floats
    paid = game.orbit((1, 1), step="0.2", steps=200, method="gradient_penalty").floats
    assert np.linalg.norm(plain[-1]) > math.sqrt(2) > 0.1 > np.linalg.norm(paid[-1])


def test_dirac_has_two_losses():
    with pytest.raises(NamingError, match='dirac has no loss "hinge"; it has logistic, linear'):
        dirac("hinge")
