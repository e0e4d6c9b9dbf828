"""What a notebook shows of a rule: its grid at a small size, its meaning, and how many pairs it has."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from lattend.counts.count import Count
from lattend.counts.latex import set_latex
from lattend.counts.terms import typeset
from lattend.draw.grid.samples import sample_picture
from lattend.errors import LattendError
from lattend.report.shown import bundle
from lattend.rules.rule import Rule

SECONDS = 0.2  # of set work: a rule is shown at once, and what takes longer is left out


@dataclass(frozen=True)
class RuleForms:
    """The forms of one rule; each is None where the rule has none."""

    rule: Rule

    def __str__(self) -> str:
        return repr(self.rule)

    def _repr_svg_(self) -> str | None:
        try:
            return sample_picture(self.rule).svg()
        except LattendError:
            return None

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {set_latex(self.rule)}$"

    def _repr_html_(self) -> str:
        about = self.rule.about
        meaning = f"<p>{escape(about.name)}: {escape(about.meaning)}</p>" if about else ""
        return f"<p><code>{escape(str(self.rule))}</code></p>{meaning}{_pairs(self.rule)}"


def rule_bundle(rule: Rule) -> dict[str, str]:
    """Every form of a rule, by MIME type."""
    return bundle(RuleForms(rule))


def _pairs(rule: Rule) -> str:
    """The number of pairs in closed form; nothing where there is none, or not soon enough."""
    try:
        found = rule.count(deadline=SECONDS, method="closed")
        if isinstance(found, Count):
            return f"<p>Attended pairs:</p>{typeset.count(str(found))}"
        return f"<p>Attended pairs: {found:,}</p>"
    except LattendError:
        return ""
