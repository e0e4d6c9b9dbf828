"""The panels of the page, by name: as the commands are called, where there is one."""

from __future__ import annotations

from lattend.web.panel import Panel
from lattend.web.panels import count, read, start

PANELS: dict[str, Panel] = {module.PANEL.name: module.PANEL for module in (start, read, count)}
