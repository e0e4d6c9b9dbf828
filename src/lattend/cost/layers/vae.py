"""A variational autoencoder with one hidden layer on each side."""

from __future__ import annotations

from dataclasses import replace

from lattend.cost.cost import Cost, single
from lattend.cost.layer import Layer
from lattend.cost.layers.builder import Builder
from lattend.cost.layers.tokenwise import TOKENS, linear
from lattend.cost.layers.transformer import joined, running
from lattend.cost.recipe import keeps_recipe
from lattend.cost.sizes import Size, read_sizes
from lattend.cost.statement import Array


@keeps_recipe
def vae(*, n: Size = "n", d: Size = "d", hidden: Size = "hidden", latent: Size = "z") -> Cost:
    """A VAE of n examples: hidden layer, mean and log-variance, one sample, hidden layer, output.

    A sample is mean + exp(log-variance / 2) * noise: two multiplies, one exponential and one add a number.
    """
    first = joined("encoder", linear(n=n, d_in=d, d_out=hidden), bend(n=n, d=hidden))
    heads = linear(n=n, d_in=hidden, d_out=f"2*({latent})").named("mean and log-variance")
    last = joined(
        "decoder",
        linear(n=n, d_in=latent, d_out=hidden),
        bend(n=n, d=hidden),
        linear(n=n, d_in=hidden, d_out=d),
    )
    model = joined("vae", first, heads, sample(n=n, z=latent), last)
    sizes = {"n": n, "d": d, "hidden": hidden, "latent": latent}
    return running(model, "vae", {}, sizes)


def bend(*, n: Size = "n", d: Size = "d") -> Cost:
    """An activation at every number."""
    build = Builder(read_sizes(n=n, d=d))
    build.take("activation", "functions", TOKENS, build.given("x", TOKENS))
    bare = replace(build.statements[0], saves="")  # the next layer saves it as its input
    return single(Layer("activation", (bare,)))


def sample(*, n: Size = "n", z: Size = "z") -> Cost:
    """Mean + exp(log-variance / 2) * noise."""
    build, over = Builder(read_sizes(n=n, z=z)), "token < n and i < z"
    mean, log = build.given("mean", over), build.given("log-variance", over)
    half = build.take("half", "constant multiplies", over, log)
    spread = build.take("spread", "exponentials", over, half)
    noise = Array("noise", mean.size, "constant")
    moved = build.take("spread * noise", "constant multiplies", over, spread, noise)
    build.take("z", "adds", over, mean, moved)
    return single(build.layer("sample"))
