"""Samples: the numbers at which the rules of the catalogue are shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from lattend.draw.grid.rules import draw
from lattend.draw.picture import Picture
from lattend.rules import CATALOGUE, Rule
from lattend.rules.example_numbers import drawn_length, drawn_number
from lattend.rules.reader import read_rule

LENGTHS = ("n", "m")


@dataclass(frozen=True)
class Sample:
    """A rule as one writes it, numbers at which its picture shows what it is, and a pixel of an image.

    >>> SAMPLES[3].draw().title
    'strided (n = 12, t = 3)'
    """

    call: str
    at: dict[str, int] = field(default_factory=dict[str, int])
    pixel: tuple[int, ...] | None = None
    note: str = ""

    @property
    def name(self) -> str:
        return self.call.partition("(")[0]

    @property
    def rule(self) -> Rule:
        return read_rule(self.call)

    def draw(self) -> Picture:
        return draw(self.rule.at(**self.at), pixel=self.pixel)


SAMPLES = (
    Sample("full", {"n": 12}),
    Sample("causal", {"n": 12}),
    Sample("causal(align=bottom-right)", {"n": 6, "m": 12}, note="new queries at the end of m cached keys"),
    Sample("strided", {"n": 12, "t": 3}),
    Sample("windowed", {"n": 12, "w": 4}),
    Sample("band", {"n": 12, "before": 3, "after": 1}),
    Sample("dilated", {"n": 16, "t": 3, "step": 2}),
    Sample("sparse_strided", {"n": 16, "l": 4}),
    Sample("sparse_fixed", {"n": 16, "l": 4, "c": 1}),
    Sample("longformer", {"n": 16, "t": 2, "g": 2}),
    Sample("bigbird", {"n": 16, "w": 2, "t": 1, "g": 1}),
    Sample(
        "bigbird(w=2, t=1, g=1, random=1, seed=0, n=16)", note="with a random block for each block of queries"
    ),
    Sample("prefix_lm", {"n": 12, "p": 4}),
    Sample("sinks", {"n": 16, "s": 2, "t": 3}),
    Sample("chunked", {"n": 16, "w": 4, "t": 1}),
    Sample("documents([5, 3, 4])", note="three documents of 5, 3 and 4 tokens on one line"),
    Sample("documents([5, 3, 4], causal=true)", note="the same documents, causal"),
    Sample("neighbourhood", {"rows": 8, "cols": 8, "r": 2}, pixel=(1, 3)),
    Sample("neighbourhood(edge=shift)", {"rows": 8, "cols": 8, "r": 2}, pixel=(1, 3), note="as in NATTEN"),
    Sample(
        "neighbourhood(step=step)", {"rows": 9, "cols": 9, "r": 1, "step": 3}, pixel=(4, 3), note="dilated"
    ),
    Sample(
        "neighbourhood(axes=3)", {"depth": 3, "rows": 6, "cols": 6, "r": 1}, pixel=(1, 2, 3), note="in 3-D"
    ),
    Sample("axial", {"rows": 8, "cols": 8}, pixel=(2, 5)),
    Sample("swin", {"rows": 8, "cols": 8, "w": 4, "shift": 2}, pixel=(3, 4)),
    Sample("raster", {"rows": 8, "cols": 8}, pixel=(3, 4)),
)


def sample(name: str) -> Sample | None:
    """The first sample of a catalogue name."""
    return next((entry for entry in SAMPLES if entry.name == name), None)


def sample_numbers(rule: Rule) -> dict[str, int]:
    """A number for every size and parameter of a rule, at which its picture shows what it is.

    >>> sample_numbers(read_rule("k <= q and q - k <= t")), sample_numbers(read_rule("strided(63)"))["n"]
    ({'n': 12, 't': 3}, 192)
    """
    shown = sample(rule.about.name) if rule.about else None
    fit = {**(shown.at if shown else {})}
    long = drawn_length(rule)
    fit |= {name: long for name in LENGTHS if long > fit.get(name, drawn_number(name))}
    return {name: fit.get(name, drawn_number(name)) for name in (*rule.sizes, *rule.parameters)}


def sample_picture(rule: Rule) -> Picture:
    """The rule at its own numbers, and at a sample's where it has none; of an image, one pixel's keys."""
    numbers = sample_numbers(rule)
    full = rule.at(**{name: numbers[name] for name in rule.free})
    pixel = None if len(rule.axes) == 1 else tuple(full.values[axis.queries] // 2 for axis in rule.axes)
    return draw(full, pixel=pixel)


def catalogue() -> dict[str, Rule]:
    """The rules of the catalogue by name; documents, which is data, with that of its sample."""
    rules: dict[str, Rule] = {}
    for name in CATALOGUE:
        shown = sample(name)
        rules[name] = shown.rule if shown is not None else read_rule(name)
    return rules
