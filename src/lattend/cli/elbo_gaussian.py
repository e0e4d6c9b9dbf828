"""lattend elbo gaussian: the bound of one number from one Gaussian latent, as exact formulas."""

from __future__ import annotations

from typing import Annotated

from lattend.cli.arguments import Json, Out, option
from lattend.cli.output import show

EXAMPLES = (
    "lattend elbo gaussian",
    "lattend elbo gaussian --x 3/2 --mean 3/4 --variance 1/2",
    "lattend elbo gaussian --weight 2 --noise 1/4 --x -1 --out bound.svg",
)


def elbo_gaussian(
    weight: Annotated[str, option("W", "What z is multiplied by; 1.")] = "1",
    bias: Annotated[str, option("B", "What is added; 0.")] = "0",
    noise: Annotated[str, option("V", "Variance of the noise; 1.")] = "1",
    x: Annotated[str, option("X", "The number that is seen; 3/2.")] = "3/2",
    mean: Annotated[str, option("M", "Mean of q; 0.")] = "0",
    variance: Annotated[str, option("V", "Variance of q; 1.")] = "1",
    out: Out = None,
    json: Json = False,
) -> None:
    """The ELBO of one number from one Gaussian latent, exactly.

    x = weight·z + bias + noise with z ~ N(0, 1), and q = N(mean, variance). Every term as a formula, with the
    proof that ELBO + gap = log p(x); the densities, and the q of equal gap. Numbers are fractions or
    decimals.
    """
    from lattend.study.generative.exact_bound import GaussianLine
    from lattend.study.generative.line_picture import draw_line

    show(draw_line(GaussianLine(weight, bias, noise, x), mean, variance), out, json)
