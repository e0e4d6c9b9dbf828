"""Dirac-GAN: the smallest GAN, data at 0, a generator of one point p and a discriminator D(x) = q·x.

Mescheder, Geiger and Nowozin, 2018, "Which training methods for GANs do actually converge?".
"""

from __future__ import annotations

from lattend.errors import NamingError
from lattend.study.games.game import Game

# What a discriminator of value t on the generated point is worth; the data's share is a constant
LOSSES = {
    "logistic": "-softplus(p*q) - log(2)",
    "linear": "-p*q",
}


def dirac(loss: str = "logistic") -> Game:
    """The Dirac-GAN as a game: min over p, max over q of g(p·q) + g(0), with the loss's g.

    logistic   g(t) = −log(1 + e^t): the GAN of Goodfellow et al., 2014
    linear     g(t) = −t: a Wasserstein GAN without its bound, the game p·q turned round

    At the equilibrium (0, 0) its field turns with frequency |g'(0)|, 1/2 or 1, and nothing pulls inwards. R1,
    the usual cure, penalises the discriminator's slope at the data, ½q². `gradient_penalty` penalises
    ½‖∂f/∂p‖² = ½q²g'(pq)²: R1 itself for the linear loss, and for the other R1 of weight g'(0)² = 1/4 near
    the equilibrium.

    >>> print(dirac("linear"))
    min over p, max over q of -p*q
    """
    if loss not in LOSSES:
        raise NamingError(f'dirac has no loss "{loss}"; it has {", ".join(LOSSES)}')
    return Game(LOSSES[loss], minimise="p", maximise="q")
