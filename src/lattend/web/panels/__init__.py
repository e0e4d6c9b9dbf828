"""The panels of the page, by name: as the commands are called, where there is one."""

from __future__ import annotations

from lattend.web.panel import Panel
from lattend.web.panels import (
    cache,
    check,
    claim,
    code,
    compare,
    cost,
    count,
    draw,
    elbo,
    elbo_discrete,
    elbo_linear,
    explain,
    game,
    game_field,
    game_outcome,
    game_steps,
    growth,
    heads,
    heads_findings,
    heads_moment,
    images,
    keys,
    layers,
    model,
    reach,
    read,
    rule_cost,
    rule_names,
    same,
    start,
    steer,
    tile_map,
    tiles,
    try_query,
    work,
)

_ALL = (
    start.PANEL,
    *(read.PANEL, read.OTHER, count.PANEL, claim.PANEL),
    *(keys.PANEL, growth.PANEL, reach.PANEL, cache.PANEL, rule_names.PANEL, code.PANEL),
    *(same.PANEL, same.SHARED),
    *(draw.PANEL, tiles.PANEL),
    *(game.PANEL, game_field.PANEL, game_outcome.PANEL, game_steps.PANEL),
    *(steer.PANEL, try_query.PANEL),
    *images.PANELS,
    *(layers.PANEL, cost.PANEL, compare.PANEL, model.PANEL),
    *(elbo.PANEL, elbo_discrete.PANEL, elbo_linear.PANEL),
    *(explain.PANEL, tile_map.PANEL, rule_cost.PANEL),
    *(work.PANEL, check.PANEL),
    *(heads.PANEL, heads_moment.PANEL, heads_findings.PANEL),
)
PANELS: dict[str, Panel] = {panel.name: panel for panel in _ALL}
