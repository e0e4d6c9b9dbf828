"""Generative models: the evidence lower bound and what it is made of; public as `lt.study.generative`.

    ELBO = E_q[log p(x|z)] − KL(q(z|x) ‖ p(z))

Sums run over the pixels of an example and over its latents, means over the batch and over samples of z.

Bounds          elbo, importance; what they give: ELBO, Importance
Distributions   Gaussian, Bernoulli, Categorical; kl, which gives a Divergence
Known exactly   LinearGaussian, draw_linear; as formulas: GaussianLine, DiscreteModel, ExactBound
VAE             VAE, digits
Completion      complete_digits, which gives a Completion

`help(lt.study.generative.elbo)` tells the arguments of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import homes, on_first_use

if TYPE_CHECKING:
    from lattend.study.generative.bound import ELBO as ELBO
    from lattend.study.generative.bound import elbo as elbo
    from lattend.study.generative.completion import Completion as Completion
    from lattend.study.generative.completion import complete_digits as complete_digits
    from lattend.study.generative.distributions import Bernoulli as Bernoulli
    from lattend.study.generative.distributions import Categorical as Categorical
    from lattend.study.generative.distributions import Gaussian as Gaussian
    from lattend.study.generative.divergence import Divergence as Divergence
    from lattend.study.generative.divergence import kl as kl
    from lattend.study.generative.exact_bound import DiscreteModel as DiscreteModel
    from lattend.study.generative.exact_bound import ExactBound as ExactBound
    from lattend.study.generative.exact_bound import GaussianLine as GaussianLine
    from lattend.study.generative.importance_bound import Importance as Importance
    from lattend.study.generative.importance_bound import importance as importance
    from lattend.study.generative.linear import LinearGaussian as LinearGaussian
    from lattend.study.generative.linear_picture import draw_linear as draw_linear
    from lattend.study.generative.vae import VAE as VAE
    from lattend.study.image_sets import digits as digits

# Where each name lives, loaded when it is first used; no file has the name of what it gives, because
# importing the file would put the module in its place: `elbo` is in bound.py
_HOME = homes(
    "lattend.study.generative",
    {
        "bound": "elbo ELBO",
        "importance_bound": "importance Importance",
        "distributions": "Gaussian Bernoulli Categorical",
        "divergence": "kl Divergence",
        "linear": "LinearGaussian",
        "exact_bound": "GaussianLine DiscreteModel ExactBound",
        "linear_picture": "draw_linear",
        "vae": "VAE",
        "completion": "complete_digits Completion",
    },
) | {"digits": "lattend.study.image_sets"}
PICTURES = ("samples", "rebuilt", "between", "latent", "plane", "training")  # of `lattend elbo digits --show`

__getattr__, __dir__ = on_first_use(globals(), "lt.study.generative", _HOME)
