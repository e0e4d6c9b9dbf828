"""RuleExplorer: the workbench's text field, sliders and grid as a widget; Python answers its questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from lattend.errors import LattendError, NamingError
from lattend.rules.reader import RuleLike, read_rule
from lattend.rules.rule import Rule
from lattend.web.worker import LATE, reply

PANELS = ("start", "read", "count", "tiles")  # what the widget may ask
LARGEST = 1 << 53  # beyond, JavaScript does not tell whole numbers apart


class RuleExplorer(anywidget.AnyWidget):
    """A rule as a text and the numbers of its letters, which a person turns and Python reads and sets."""

    _esm = Path(__file__).with_name("explorer.js")
    rule = traitlets.Unicode("k <= q").tag(sync=True)
    numbers = traitlets.Dict(key_trait=traitlets.Unicode(), value_trait=traitlets.Int()).tag(
        sync=True,
        to_json=lambda numbers, _: _sent(numbers),
        from_json=lambda numbers, _: {name: int(value) for name, value in numbers.items()},
    )

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.on_msg(lambda _, message, __: self._answer(message))

    @property
    def value(self) -> Rule:
        """The rule at its numbers, to count, draw or run; raises where the text cannot be read."""
        rule = read_rule(self.rule)
        return rule.at(**{name: value for name, value in self.numbers.items() if name in rule.free})

    def _answer(self, message: Mapping[str, Any]) -> None:
        """Answers one question of the page, whatever it is: a page that asks nonsense is told so."""
        panel, question = message.get("panel"), message.get("question")
        if panel in PANELS:
            status, _, body = reply(str(panel), "", json.dumps(question).encode())
            status = 200 if status == LATE else status  # the answer says it, too
            self.send({"id": message.get("id"), "status": status, "found": json.loads(body)})

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget; where a page shows none, the rule as it shows itself."""
        found = super()._repr_mimebundle_(**options)
        try:
            shown = self.value._repr_mimebundle_()
        except LattendError:
            return found
        data, metadata = found if isinstance(found, tuple) else (found or {}, {})
        return {**shown, **data}, metadata

    def __repr__(self) -> str:
        numbers = "".join(f", {name}={value}" for name, value in self.numbers.items())
        return f"RuleExplorer({self.rule!r}{numbers})"


def explorer(rule: RuleLike, numbers: Mapping[str, int]) -> RuleExplorer:
    """The explorer of a rule, or of its text as it is typed, with these numbers and those the rule has."""
    read = read_rule(rule)
    if (read.data or read.open) and not isinstance(rule, str):
        raise NamingError(
            f'the explorer shows what can be typed, and "{read.text}" looks up arrays; '
            "draw it instead: rule.draw(…)"
        )
    read.at(**numbers)  # raises where a number is of no letter, or is no whole number
    if isinstance(rule, str):
        return RuleExplorer(rule=rule, numbers=dict(numbers))
    return RuleExplorer(rule=_typed(read), numbers={**read.values, **numbers})


def _typed(rule: Rule) -> str:
    """The rule as one types it: its name in the catalogue, or its text."""
    bare = replace(rule, values={})
    named = rule.about is not None and read_rule(rule.about.name) == bare
    return rule.about.name if rule.about is not None and named else rule.text


def _sent(numbers: Mapping[str, int]) -> dict[str, int | str]:
    """Numbers as JavaScript can hold them: the largest as text."""
    return {name: value if abs(value) < LARGEST else str(value) for name, value in numbers.items()}
