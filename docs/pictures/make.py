"""Draws the pictures of the README and the docs: `make pictures`. A test compares them with the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opening import opening

import lattend as lt
from lattend.draw import Picture
from lattend.nn.pictures.heads import make_heads
from lattend.study.generative.linear_picture import show_linear
from lattend.study.worked.work import EXAMPLE

HERE = Path(__file__).parent
# The fields of Llama 3.1 8B that a price is made from
LLAMA = {
    **{"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336},
    **{"num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8},
}
GROUPED: dict[str, Any] = {"heads": 32, "kv_heads": 8, "head_dim": 128}
RESULTS = HERE.parents[1] / "benchmarks" / "results"


def pictures() -> dict[str, Picture]:
    """Each file's name and its picture."""
    rules, game = lt.rules, lt.study.games.Game("p*q")
    digits, fashion, cifar10 = (
        lt.study.heads.Record.read(RESULTS / f"heads_{images}_0.json")
        for images in ("digits", "fashion", "cifar10")
    )
    methods = ("simultaneous", "alternating", "optimistic", "extragradient")
    return {
        "causal.svg": rules.causal().draw(n=12),
        "strided.svg": rules.strided(3).draw(n=12),
        "windowed.svg": rules.windowed(4).draw(n=12),
        "beside.svg": rules.causal().draw(
            n=12, beside=[rules.strided(3), rules.windowed(4)], style="cross", first=1
        ),
        "compared.svg": rules.strided(3).draw(n=12, compare=rules.windowed(4)),
        "sparse_fixed.svg": rules.sparse_fixed(4, 1).draw(n=16),
        "neighbourhood.svg": rules.neighbourhood(2).draw(rows=9, cols=9, pixel=(1, 4)),
        "million.svg": rules.sinks(60_000, 90_000).draw(n=1_000_000),
        "patches.svg": lt.nn.draw_patches((10, 14), 4, 3, "zeros", channels=3, width=64),
        "heads.svg": lt.nn.draw_heads(make_heads(kernel=3, alpha=[2]), size=(9, 9), pixel=(3, 4)),
        "heads_paths.svg": digits.draw_paths(),
        "heads_spread.svg": digits.draw_spread(),
        "heads_fashion_paths.svg": fashion.draw_paths(),
        "heads_cifar10.svg": cifar10.draw(),
        "heads_cifar10_paths.svg": cifar10.draw_paths(),
        "heads_cifar10_spread.svg": cifar10.draw_spread(),
        "scores.svg": lt.nn.draw_scores("quadratic", centres=[(1, 2)], alpha=[0.5]),
        "conv.svg": lt.nn.draw_conv(3, size=8, c_in=16, c_out=32, alpha=2.0, error=1e-3),
        "grid.svg": lt.nn.draw_grid(8, c=3, h=64),
        "grid_diagram.svg": lt.nn.draw_grid(4, diagram=True),
        "grid_steps.svg": lt.nn.draw_grid((4, 6), frames=True),
        "worked.svg": lt.study.work(**EXAMPLE).draw(),
        "steering.svg": lt.study.steer(
            [[0, 0], [2, 0], [2, 2], [0, 2], [1, 1]], ["1/3", "2/3", 0, 0, 0], error=1e-4
        ).draw(),
        "shards.svg": lt.parallel.plan("strided(5)", n=64, ranks=8).draw(),
        "shard_strategies.svg": lt.parallel.plan("strided(4095)", n=10**9, ranks=1024, **GROUPED).chart(),
        "serving.svg": lt.cost.serving(LLAMA, 32768, machine="H100", batch=8, rule="strided(4095)").draw(),
        "gradients.svg": lt.study.gradients.measure(steps=0).draw(),
        "elbo_linear.svg": show_linear(),
        "game.svg": game.orbit((1, 1), step=1, steps=6).draw(),
        "game_orbits.svg": lt.study.games.compare_orbits(
            *(game.orbit((1, 1), step="1/2", steps=20, method=method) for method in methods)
        ),
        "game_methods.svg": lt.study.games.compare_methods(game),
    }


if __name__ == "__main__":
    for name, picture in pictures().items():
        print(picture.save(HERE / name).name)
    (HERE / "opening.svg").write_text(opening(), encoding="utf-8")
    print("opening.svg")
