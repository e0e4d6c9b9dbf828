"""draw_linear: ELBO + gap = log p(x) on a model where all three are known, and the bound of k samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from lattend.draw.charts.chart import Chart, curves
from lattend.draw.picture import Picture
from lattend.errors import NamingError
from lattend.report.numbers import ROUNDING, format_error, format_fixed, format_number
from lattend.study.generative.checks import check_data, count, counts, seeded
from lattend.study.generative.distributions import Gaussian
from lattend.study.generative.importance_bound import Importance, importance
from lattend.study.generative.linear import Identity, LinearGaussian
from lattend.wording import many

KS = tuple(2**power for power in range(10))
MOST_REPEATS = 2000  # of bounds from few samples, which come from the draws of the largest k
AT_ONCE = 2**15  # numbers decoded at a time: they fit in a cache, and wait for no other thread


def draw_linear(
    model: LinearGaussian,
    x: Tensor,
    *,
    k: int | Sequence[int] = KS,
    samples: int = 200,
    seed: int = 0,
) -> Picture:
    """The identity ELBO(q) + KL(q ‖ posterior) = log p(x) for three q, and the importance bound against k.

    The three are the posterior itself, the best diagonal q, and the prior. The bound of most samples is the
    mean of `samples` repeats, and the others come from the same draws. All numbers are nats, means over the
    examples x [batch, D].

    >>> model = LinearGaussian(torch.ones(3, 1, dtype=torch.float64))
    >>> figure = draw_linear(model, torch.zeros(1, 3, dtype=torch.float64), k=(1, 2), samples=10)
    >>> figure.table[0]
    ('q', 'reconstruction', 'KL', 'ELBO', 'gap', 'ELBO + gap')
    """
    if not isinstance(model, LinearGaussian):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise NamingError(f"draw_linear takes a LinearGaussian, got {type(model).__name__}")
    places = sorted(set(counts("k", k)))
    x = model.read(check_data(x))
    with torch.no_grad():
        posteriors = _posteriors(model, x)
        exact = {name: model.elbo(x, q) for name, q in posteriors.items()}
        at_once = max(1, AT_ONCE // x.numel())
        noise = seeded(seed, x.device)
        most = {
            name: importance(
                x, q, model.decode, k=places[-1], samples=samples, at_once=at_once, generator=noise
            )
            for name, q in posteriors.items()
            if name != "posterior"  # every weight is p(x) there, and so is every bound
        }
        bounds = {name: [_with(bound, k) for k in places] for name, bound in most.items()}
    return _figure(model, x, places, exact, bounds)


def show_linear(
    size: int = 6,
    latent: int = 2,
    noise: float = 1.0,
    examples: int = 5,
    *,
    rows: Any = None,
    k: int | Sequence[int] = KS,
    samples: int = 200,
    seed: int = 0,
) -> Picture:
    """`draw_linear` of a model drawn at random and so many of its examples.

    With `rows` [many, D] the model is the likeliest for them, and the first of them are the examples.
    """
    examples, generator = count("examples", examples), seeded(seed)
    if rows is None:
        model = LinearGaussian.random(size, latent, noise, generator)
        x = model.sample(examples, generator)
    else:
        data = torch.as_tensor(rows, dtype=torch.float64)
        model, x = LinearGaussian.fit(data, latent), data[:examples]
    return draw_linear(model, x, k=k, samples=samples, seed=seed)


def _with(bound: Importance, k: int) -> Importance:
    """The bound of fewer samples from the same weights, which are more repeats of it."""
    weights = bound.log_weights.flatten(0, 1)
    repeats = min(len(weights) // k, max(len(bound.bounds), MOST_REPEATS))
    weights = weights[: repeats * k].unflatten(0, (repeats, k))
    return replace(bound, log_weights=weights, bounds=weights.logsumexp(1) - math.log(k))


def _posteriors(model: LinearGaussian, x: Tensor) -> dict[str, Gaussian]:
    prior = model.prior
    return {
        "posterior": model.posterior(x),
        "best diagonal": model.mean_field(x),
        "prior": Gaussian(prior.mean.expand(len(x), -1), prior.variance),
    }


def _figure(
    model: LinearGaussian,
    x: Tensor,
    places: list[int],
    exact: dict[str, Identity],
    bounds: dict[str, list[Importance]],
) -> Picture:
    D, latent = model.W.shape
    evidence = exact["posterior"].log_prob.mean().item()
    worst = max(curve.error for curve in exact.values())
    facts = (
        ("model", f"x = W z + b + noise: {many(D, 'number')} from {many(latent, 'latent')}"),
        ("log p(x)", f"{format_fixed(evidence, 12)} nats, mean of {many(len(x), 'example')}"),
        ("identity", f"ELBO + gap = log p(x) within {_power(worst)}, for each example"),
    )
    head = ("q", "reconstruction", "KL", "ELBO", "gap", "ELBO + gap")
    rows = [(name, *_terms(curve)) for name, curve in exact.items()]
    data = {
        "dimensions": D,
        "latent": latent,
        "examples": len(x),
        "log_prob": evidence,
        "identity": {name: curve.json() for name, curve in exact.items()},
        "bounds": {name: [bound.json() for bound in curve] for name, curve in bounds.items()},
    }
    return Picture(
        "A linear-Gaussian model: ELBO + gap = log p(x)",
        (),
        _caption(bounds),
        (),
        facts=facts,
        table=(head, *rows),
        drawn=tuple(
            f"q = {name}: {reconstruction} − {kl} = {elbo}, gap {gap}"
            for name, reconstruction, kl, elbo, gap, _ in rows
        ),
        charts=(_chart(places, evidence, bounds),),
        data=data,
    )


def _chart(places: list[int], evidence: float, bounds: dict[str, list[Importance]]) -> Chart:
    """How far the bounds are below log p(x), on a log scale where noise leaves no doubt that they are."""
    gaps = {name: [evidence - bound.value.item() for bound in curve] for name, curve in bounds.items()}
    lines = [(f"q = {name}", list(zip(places, gap, strict=True))) for name, gap in gaps.items()]
    clear = all(
        gap > 2 * (bound.standard_error or 0) + ROUNDING
        for name, curve in bounds.items()
        for gap, bound in zip(gaps[name], curve, strict=True)
    )
    title = "log p(x) − importance bound"
    return Chart(title, "k", "nats", curves(lines), log_x=2, log_y=10 if clear else 0)


def _caption(bounds: dict[str, list[Importance]]) -> tuple[str, ...]:
    """The last bound from each q, with its error and how many weights it rests on."""
    last = {name: curve[-1] for name, curve in bounds.items()}
    first = next(iter(last.values()))
    return (
        f"bounds at k = {first.k:,}, means of {many(len(first.bounds), 'repeat')}:",
        *(
            f"q = {name}: {format_error(bound.value.item(), bound.standard_error)}; "
            f"effective sample size {format_fixed(bound.effective_sample_size, 1)} of {bound.k:,}"
            for name, bound in last.items()
        ),
    )


def _terms(identity: Identity) -> tuple[str, ...]:
    terms = (identity.reconstruction, identity.kl, identity.elbo, identity.gap)
    return (
        *(format_error(term.mean().item()) for term in terms),
        format_fixed((identity.elbo + identity.gap).mean().item(), 12),
    )


def _power(error: float) -> str:
    """The power of ten above an error; rounding below 1e-12 differs from machine to machine."""
    return format_number(10.0 ** math.ceil(math.log10(max(error, 1e-12))))
