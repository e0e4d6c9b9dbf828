"""A variational autoencoder with one hidden layer on each side."""

from __future__ import annotations

from dataclasses import replace

from lattend.cost.cost import Cost, single
from lattend.cost.layer import Layer
from lattend.cost.layers.tokenwise import columns, elementwise, linear
from lattend.cost.layers.transformer import joined, running
from lattend.cost.sizes import Size, read_size
from lattend.cost.statement import Array


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
    whole = joined("vae", first, heads, sample(n=n, z=latent), last)
    sizes = {"n": n, "d": d, "hidden": hidden, "latent": latent}
    return running(whole, "vae", {}, sizes)


def bend(*, n: Size = "n", d: Size = "d") -> Cost:
    """An activation at every number."""
    sizes = {"n": read_size("n", n), "d": read_size("d", d)}
    x = Array("x", columns("token < n and i < d", sizes), "input")
    _, statement = elementwise("activation", "functions", "token < n and i < d", sizes, x)
    bare = replace(statement, saves="")  # the next layer saves it as its input
    return single(Layer("activation", (bare,)))


def sample(*, n: Size = "n", z: Size = "z") -> Cost:
    """Mean + exp(log-variance / 2) * noise."""
    sizes = {"n": read_size("n", n), "z": read_size("z", z)}
    over = "token < n and i < z"
    mean, log = (Array(name, columns(over, sizes), "input") for name in ("mean", "log-variance"))
    noise = Array("noise", mean.size, "constant")
    half, first = elementwise("half", "constant multiplies", over, sizes, log)
    spread, second = elementwise("spread", "exponentials", over, sizes, half)
    moved, third = elementwise("spread * noise", "constant multiplies", over, sizes, spread, noise)
    _, fourth = elementwise("z", "adds", over, sizes, mean, moved)
    return single(Layer("sample", (first, second, third, fourth)))
