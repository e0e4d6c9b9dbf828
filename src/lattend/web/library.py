"""What panels use of the library, loaded before they are asked: each name brings others along."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from lattend.web.threads import work_with_one

PLAIN = (
    "ask.question",
    "cost.comparison.chart",
    "cost.comparison.defaults",
    "cost.comparison.train_test",
    "cost.layer_catalogue",
    "cost.models.formulas",
    "cost.models.summary",
    "cost.models.times",
    "cost.summary",
    "counts.formula_parser",
    "counts.field_map",
    "counts.formula_latex",
    "counts.latex",
    "draw.grid.samples",
    "nn.convolution.query_heads",
    "nn.images.size_text",
    "nn.pictures.conv",
    "nn.pictures.grid",
    "nn.pictures.patches",
    "nn.pictures.scores",
    "plans.retention",
    "rules.code",
    "rules.typos",
    "sets.recognise",
    "study.derivations.catalogue",
    "study.derivations.tried",
    "study.games.pictures",
    "study.generative.line_picture",
    "study.heads.pictures",
    "study.steering.cones",
    "study.steering.latex",
    "study.worked.documents",
    "study.worked.judge",
    "study.worked.judgement_text",
    "study.worked.origin",
    "study.worked.work",
)
TORCH = (  # which takes seconds
    "attend.explain.memory",
    "attend.explain.text",
    "nn.convolution.trial",
    "nn.grid.check",
    "study.generative.linear_picture",
)


def load_library(torch: bool) -> None:
    """Load it; with torch too where that is installed: panels that need it say so."""
    torch = torch and find_spec("torch") is not None
    for name in (*PLAIN, *(TORCH if torch else ())):
        import_module(f"lattend.{name}")
    if torch:
        work_with_one()
