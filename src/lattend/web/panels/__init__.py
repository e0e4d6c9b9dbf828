"""The panels of the page by name. A panel that has a command is named after it."""

from __future__ import annotations

from importlib import import_module

from lattend.web.panel import Panel

MODULES = (  # in the order in which the questions of a batch are answered
    *("start", "read", "count", "claim", "reach", "code", "same", "draw", "explain", "rule_cost"),
    *("game", "game_steps", "steer", "conv", "grid", "patches", "scores", "elbo"),
    *("work", "heads", "derive", "cost", "compare", "model"),
)
PANELS: dict[str, Panel] = {
    panel.name: panel
    for module in MODULES
    for panel in vars(import_module(f"{__name__}.{module}")).values()
    if isinstance(panel, Panel)
}
