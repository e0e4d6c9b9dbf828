"""The panels of the page by name. A panel that has a command is named after it."""

from __future__ import annotations

from importlib import import_module

from lattend.web.panel import Panel

MODULES = (  # in the order in which the questions of a batch are answered
    *("start", "questions", "read", "count", "claim", "keys", "growth", "reach", "field", "cache"),
    *("rule_names", "code", "same", "draw", "tiles"),
    *("game", "game_field", "game_outcome", "game_steps", "steer", "try_query"),
    *("images.conv", "images.conv_leak", "images.conv_error", "images.conv_price", "images.conv_same"),
    *("images.grid", "images.grid_price", "images.grid_check", "images.grid_diagram"),
    *("images.patches", "images.patches_price", "images.scores"),
    *("elbo", "elbo_discrete", "elbo_linear", "explain", "tile_map", "rule_cost", "work", "check"),
    *("heads", "heads_moment", "heads_findings", "derive"),
    *("layers", "cost", "cost_claim", "compare", "tables", "model"),
)
PANELS: dict[str, Panel] = {
    panel.name: panel
    for module in MODULES
    for panel in vars(import_module(f"{__name__}.{module}")).values()
    if isinstance(panel, Panel)
}
