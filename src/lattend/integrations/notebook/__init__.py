"""Lattend in notebooks: `explore(rule)` is a rule to turn and to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import needing

if TYPE_CHECKING:
    from lattend.integrations.notebook.explorer import RuleExplorer
    from lattend.rules.reader import RuleLike


def explore(rule: RuleLike = "k <= q and q - k <= t", /, **numbers: int) -> RuleExplorer:
    """The rule explorer: a text field, a slider for every letter, the grid, and the closed form below.

    What it shows can be read and set: `explorer.rule`, a text, and `explorer.numbers`, by letter;
    `explorer.value` is the rule itself at these numbers.
    """
    what = "the rule explorer is a widget, made with anywidget and pydantic"
    return needing("anywidget pydantic", "lattend.integrations.notebook.explorer", what, "notebook").explorer(
        rule, numbers
    )
