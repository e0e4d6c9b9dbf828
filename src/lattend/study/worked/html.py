"""HTML: the steps as tables with real fractions, weights shaded by their size."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from lattend.report.numbers import fixed
from lattend.study.exact.writing import format_exact
from lattend.study.worked.entry import MatrixEntry
from lattend.study.worked.step import Rows, Step
from lattend.study.worked.terminal import forms_of

if TYPE_CHECKING:
    from lattend.study.worked.work import Worked

STYLE = """
.worked { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 1rem auto; padding: 0 1rem; }
.worked h2 { font-size: 1.3em; } .worked h3 { font-size: 1.05em; margin: 1.4em 0 .2em; }
.worked .formula { font-weight: normal; opacity: .75; margin-left: .6em; }
.worked .beside { display: flex; flex-wrap: wrap; column-gap: 2.5rem; } .worked .scroll { overflow-x: auto; }
.worked table { border-collapse: collapse; margin: .3em 0; font-variant-numeric: tabular-nums; }
.worked caption { text-align: left; opacity: .75; }
.worked th { font-weight: normal; opacity: .6; padding: .2em .7em; }
.worked td { border: 1px solid rgba(128, 128, 128, .35); padding: .3em .7em; text-align: center; }
.worked .fraction { display: inline-block; vertical-align: middle; text-align: center; }
.worked .fraction > span { display: block; padding: 0 .25em; }
.worked .fraction > span + span { border-top: 1px solid currentColor; }
.worked .decimal { display: block; } .worked .exact + .decimal { opacity: .75; font-size: .92em; }
"""
SHADE = "47, 111, 181"  # the blue of attended pairs in pictures
_POWER = re.compile(r"\^(√?\w+|\([^()]*\))")
_INDEX = re.compile(r"\bW_(\w)")
_ROOT = re.compile(r"sqrt\((\d+)\)")


def html(worked: Worked, places: int = 4, show: str = "both") -> str:
    """All steps in one element, with the style they need."""
    facts = "".join(f"<p>{_signs(said)}</p>\n" for said in worked.statements(show))
    given, steps = ([_step(step, places, show) for step in part] for part in (worked.exercise, worked.steps))
    beside = (f'<div class="beside">\n{"".join(part)}</div>\n' for part in (given, steps[:3]))
    return (
        f'<div class="worked">\n<style>{STYLE}</style>\n<h2>Attention worked through</h2>\n'
        f"{facts}{''.join(beside)}{''.join(steps[3:])}</div>\n"
    )


def _step(step: Step, places: int, show: str) -> str:
    title = f'<h3>{escape(step.title)}<span class="formula">{_signs(step.formula)}</span></h3>\n'
    tables = "".join(
        _table(step, rows, places, forms_of(step, rows, show), f"head {head + 1}" if step.per_head else "")
        for head, rows in enumerate(step.tables)
    )
    return f"<section>\n{title}{tables}</section>\n"


def _table(step: Step, rows: Rows, places: int, forms: tuple[str, ...], caption: str) -> str:
    of = "key " if step.across == "key" else ""
    names = "".join(f'<th scope="col">{of}{at + 1}</th>' for at in range(len(rows[0])))
    head = f"<tr><th></th>{names}</tr>\n" if step.across else ""
    body = "".join(
        f'<tr><th scope="row">{step.down} {place + 1}</th>'
        + "".join(_cell(step, entry, places, forms) for entry in row)
        + "</tr>\n"
        for place, row in enumerate(rows)
    )
    said = f"<caption>{caption}</caption>\n" if caption else ""
    return f'<div class="scroll"><table>\n{said}{head}{body}</table></div>\n'


def _cell(step: Step, entry: MatrixEntry, places: int, forms: tuple[str, ...]) -> str:
    share = fixed(entry.value, 3)
    shade = f' style="background: rgba({SHADE}, {share})"' if step.name == "weights" else ""
    parts: list[str] = []
    if "exact" in forms:
        parts.append(f'<span class="exact">{_exact(entry)}</span>')
    shown = entry.decimal(places)
    if "decimal" in forms and not (parts and shown == entry.text):
        parts.append(f'<span class="decimal">{_signs(shown)}</span>')
    return f"<td{shade}>{''.join(parts)}</td>"


def _exact(entry: MatrixEntry) -> str:
    """A fraction over its line, other forms in one."""
    if entry.value.is_finite() and not entry.exact.is_Add:
        above, below = entry.exact.as_numer_denom()
        if below != 1:
            return (
                f'<span class="fraction"><span>{_signs(format_exact(above))}</span>'
                f"<span>{_signs(format_exact(below))}</span></span>"
            )
    return _signs(entry.text or "")


def _signs(written: str) -> str:
    """Powers raised, indices lowered, roots, the minus sign and infinity as they are printed."""
    found = _ROOT.sub(r"√\1", escape(written).replace("-inf", "−∞").replace("-", "−"))
    found = _INDEX.sub(r"W<sub>\1</sub>", found)
    return _POWER.sub(lambda power: f"<sup>{power[1].strip('()')}</sup>", found)
