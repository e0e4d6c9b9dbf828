"""The picture of gradients against distance: a logarithmic chart for each stage of training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.draw.charts.chart import Chart, curves
from lattend.draw.picture import Picture
from lattend.study.figures import figure
from lattend.study.gradients.recall import INITIAL, TRAINED
from lattend.wording import many

if TYPE_CHECKING:
    from lattend.study.gradients.decay import GradientStudy


def figure_of_gradients(study: GradientStudy) -> Picture:
    """The report with a chart for each stage, both between the same ends; sizes of 0 are left out."""
    lines = {
        stage: [
            (one.network, [(float(d), float(size)) for d, size in enumerate(one.mean) if size > 0])
            for one in study.found
            if one.stage == stage
        ]
        for stage in (INITIAL, TRAINED)
    }
    titles = {INITIAL: "At initialisation", TRAINED: f"After {many(study.steps, 'step')} of training"}
    every = [Chart(lines=curves(found), log_y=10).ends()[1] for found in lines.values() if found]
    ends = min(low for low, _ in every), max(high for _, high in every)
    charts = tuple(
        Chart(
            titles[stage], "distance d", "size of the gradient", curves(found), log_y=10, y=ends,
            x=(0.0, study.length - 1.0),
        )
        for stage, found in lines.items()
        if found
    )  # fmt: skip
    return figure(study.report(), charts)
