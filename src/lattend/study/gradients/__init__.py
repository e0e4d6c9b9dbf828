"""Gradient size against distance, for networks that remember; public as `lt.study.gradients`.

Measuring  measure, which gives a GradientStudy; .claim("rnn vanishes") judges a claim, .draw() is the chart
Judging    judge_all, which measures what several claims speak of
By hand    jacobian_sizes and by_distance, for a network of your own

`help(lt.study.gradients.measure)` tells the arguments of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import homes, on_first_use

if TYPE_CHECKING:
    from lattend.study.gradients.claims import GradientVerdict as GradientVerdict
    from lattend.study.gradients.claims import judge_all as judge_all
    from lattend.study.gradients.decay import Gradients as Gradients
    from lattend.study.gradients.decay import GradientStudy as GradientStudy
    from lattend.study.gradients.decay import measure as measure
    from lattend.study.gradients.networks import by_distance as by_distance
    from lattend.study.gradients.networks import jacobian_sizes as jacobian_sizes

# Where each name lives, loaded when it is first used
_HOME = homes(
    "lattend.study.gradients",
    {
        "decay": "measure GradientStudy Gradients",
        "claims": "judge_all GradientVerdict",
        "networks": "jacobian_sizes by_distance",
    },
)

__getattr__, __dir__ = on_first_use(globals(), "lt.study.gradients", _HOME)
