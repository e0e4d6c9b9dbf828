"""One small result of every kind that the library gives, by the name of its class."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import lattend as lt
from lattend.counts.check import check

BAND = lt.rule("k <= q and q - k <= t")


def profile() -> Any:
    import torch

    return lt.cost.of(torch.nn.Linear(3, 4), (2, 3))


def bound(many: bool = False) -> Any:
    import torch

    from lattend.study.generative import Bernoulli, Gaussian, elbo, importance

    x = torch.tensor([[1.0, 0.0]])
    q = Gaussian(torch.zeros(1, 2), log_variance=torch.zeros(1, 2))
    return (importance if many else elbo)(x, q, Bernoulli, samples=4)


def bias() -> Any:
    import torch

    return lt.Bias("-slope[head]*(q - k)", slope=torch.ones(2))


def divergence() -> Any:
    import torch

    from lattend.study.generative import Gaussian, kl

    return kl(Gaussian(torch.zeros(2), torch.ones(2)), Gaussian(torch.ones(2), torch.ones(2)))


def completion() -> Any:
    return lt.study.generative.complete_digits(epochs=1)


def history() -> Any:
    import torch

    vae = lt.study.generative.VAE(4, latent=1, hidden=(4,))
    return vae.fit(torch.rand(8, 4).round(), epochs=1)


def record() -> Any:
    from made_heads import record

    return record(epochs=1)


def gradients() -> Any:
    return lt.study.gradients.measure(["rnn"], length=6, width=4, seeds=2, steps=1)


def model() -> Any:
    return lt.cost.config(
        {
            "model_type": "llama",
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 128,
            "vocab_size": 100,
        }
    )


def encoder_decoder() -> Any:
    sizes = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_heads": 4, "num_layers": 2, "vocab_size": 100}
    return lt.cost.config({"model_type": "t5", **sizes})


GAME = lt.study.games.Game("p*q")
RESULTS: dict[str, Callable[[], Any]] = {
    "Rule": lambda: BAND,
    "Picture": lambda: BAND.draw(n=6, t=2),
    "Count": BAND.count,
    "Verdict": lambda: BAND.count().claim("n*t"),
    "OrderVerdict": lambda: BAND.count().claim("O(n*t)"),
    "Counterexample": lambda: BAND.count().claim("n*t").counterexample,
    "Reach": BAND.reach,
    "Depth": BAND.layers_to_reach_all,
    "Witness": lambda: BAND.at(t=3).difference(lt.rule("windowed(4)")),
    "CountCheck": lambda: check(BAND, 4),
    "Growth": lambda: BAND.count().order(),
    "ShardPlan": lambda: lt.parallel.plan(BAND, n=256, t=31, ranks=4, heads=2, head_dim=16),
    "Explanation": lambda: lt.explain(BAND, n=256, t=31, heads=2, head_dim=16),
    "Bias": bias,
    "KVCache": lambda: lt.KVCache(BAND, batch=1, heads=1, head_dim=4, t=3),
    "Cost": lambda: lt.cost.attention("causal"),
    "Model": model,
    "EncoderDecoder": encoder_decoder,
    "ModelWork": lambda: model().forward(16),
    "Utilisation": lambda: lt.cost.mfu(model(), tokens_per_s=12000, peak="H100", length=64),
    "Serving": lambda: lt.cost.serving(model(), 64, rule="strided(7)"),
    "ServingPrice": lambda: lt.cost.serving(model(), 64).own,
    "Profile": profile,
    "CostCheck": lambda: lt.cost.rnn2d().check(n=3, h=2, c=2),
    "PerPoint": lambda: lt.cost.rnn2d().per("cell"),
    "ParameterTable": lambda: lt.cost.lstm().parameters_by_matrix(),
    "Catalogue": lt.cost.catalogue,
    "Comparison": lambda: lt.cost.compare(
        {
            "rnn": lt.cost.rnn(steps="t", inputs="n", hidden="n"),
            "full": lt.cost.attention("full", n="t", heads=1, D_i="n", D_hid="n", projections=None),
        },
        over="t",
    ),
    "TrainTest": lt.cost.train_test,
    "Worked": lambda: lt.study.work([[1, 0], [0, 1]]),
    "Derivation": lambda: lt.study.derive("elbo"),
    "Steered": lambda: lt.study.steer([[1, 0.5], [0, 1]], [0, 1]),
    "SteeredHeads": lambda: lt.study.steer(np.array([[[1, 0.5], [0, 1]]] * 2), [0, 1]),
    "Trial": lambda: lt.study.try_query([[1, 0.5], [0, 1]], [1, 1]),
    "WeightFormula": lambda: lt.study.weight_formula(["1/2", "1/2"]),
    "Game": lambda: GAME,
    "Orbit": lambda: GAME.orbit((1, 1), step=1, steps=6),
    "Analysis": lambda: GAME.analyse("alternating", step=1),
    "StepMap": lambda: GAME.map("extragradient"),
    "Equilibria": GAME.equilibria,
    "Equilibrium": lambda: GAME.equilibria()[0],
    "RingRun": lambda: lt.study.games.ring("gradient_penalty", steps=2, seed=0),
    "ELBO": bound,
    "Importance": lambda: bound(many=True),
    "ExactBound": lambda: lt.study.generative.GaussianLine(1, 0, 1, 3).bound(0, 1),
    "Divergence": divergence,
    "GradientStudy": gradients,
    "GradientVerdict": lambda: gradients().claim("rnn vanishes"),
    "Record": record,
    "History": history,
    "Completion": completion,
}
