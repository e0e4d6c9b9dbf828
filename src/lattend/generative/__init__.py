"""Generative models: the evidence lower bound and what it is made of; public as `lt.generative`.

    ELBO = E_q[log p(x|z)] − KL(q(z|x) ‖ p(z))

Sums run over the pixels of an example and over its latents, means over the batch and over samples of z.

Bounds          elbo, importance; what they give: ELBO, Importance
Distributions   Gaussian, Bernoulli, Categorical; kl, which gives a Divergence
Known exactly   LinearGaussian, draw_linear
VAE             VAE, digits

`help(lt.generative.elbo)` tells the arguments of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import on_first_use

if TYPE_CHECKING:
    from lattend.generative.bound import ELBO as ELBO
    from lattend.generative.bound import elbo as elbo
    from lattend.generative.distributions import Bernoulli as Bernoulli
    from lattend.generative.distributions import Categorical as Categorical
    from lattend.generative.distributions import Gaussian as Gaussian
    from lattend.generative.divergence import Divergence as Divergence
    from lattend.generative.divergence import kl as kl
    from lattend.generative.handwritten import digits as digits
    from lattend.generative.importance_bound import Importance as Importance
    from lattend.generative.importance_bound import importance as importance
    from lattend.generative.linear import LinearGaussian as LinearGaussian
    from lattend.generative.linear_picture import draw_linear as draw_linear
    from lattend.generative.vae import VAE as VAE

# Where each name lives, loaded when it is first used; no file has the name of what it gives, because
# importing the file would put the module in its place: `digits` is in handwritten.py, `elbo` in bound.py
_HOME: dict[str, str] = {
    "elbo": "lattend.generative.bound",
    "ELBO": "lattend.generative.bound",
    "importance": "lattend.generative.importance_bound",
    "Importance": "lattend.generative.importance_bound",
    "Gaussian": "lattend.generative.distributions",
    "Bernoulli": "lattend.generative.distributions",
    "Categorical": "lattend.generative.distributions",
    "kl": "lattend.generative.divergence",
    "Divergence": "lattend.generative.divergence",
    "LinearGaussian": "lattend.generative.linear",
    "draw_linear": "lattend.generative.linear_picture",
    "VAE": "lattend.generative.vae",
    "digits": "lattend.generative.handwritten",
}
__all__ = [  # noqa: RUF022  (in the order a reader meets them)
    "elbo",
    "ELBO",
    "importance",
    "Importance",
    "Gaussian",
    "Bernoulli",
    "Categorical",
    "kl",
    "Divergence",
    "LinearGaussian",
    "draw_linear",
    "VAE",
    "digits",
]
PICTURES = ("samples", "rebuilt", "between", "latent", "plane", "training")  # of `lattend elbo digits --show`

__getattr__, __dir__ = on_first_use(globals(), "lt.generative", _HOME)
