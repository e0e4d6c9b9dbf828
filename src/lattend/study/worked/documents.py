"""Documents: the steps of an exercise as HTML, Markdown and LaTeX."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from lattend.report.latex import NEEDS, inline
from lattend.report.numbers import fixed
from lattend.study.exact import writing
from lattend.study.exact.writing import format_exact
from lattend.study.worked.entry import MatrixEntry, Rows, Step
from lattend.study.worked.inputs import Exercise
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
    facts = "".join(f"<p>{_signs(statement)}</p>\n" for statement in worked.statements(show))
    exercise_parts, steps = (
        [_step(step, places, show) for step in part] for part in (worked.exercise, worked.steps)
    )
    beside = (f'<div class="beside">\n{"".join(part)}</div>\n' for part in (exercise_parts, steps[:3]))
    return (
        f'<div class="worked">\n<style>{STYLE}</style>\n<h2>Attention worked through</h2>\n'
        f"{facts}{''.join(beside)}{''.join(steps[3:])}</div>\n"
    )


def _step(step: Step, places: int, show: str) -> str:
    title = f'<h3>{escape(step.title)}<span class="formula">{_signs(step.formula)}</span></h3>\n'
    tables = "".join(
        _html_table(
            step, rows, places, forms_of(step, rows, show), f"head {head + 1}" if step.per_head else ""
        )
        for head, rows in enumerate(step.tables)
    )
    return f"<section>\n{title}{tables}</section>\n"


def _html_table(step: Step, rows: Rows, places: int, forms: tuple[str, ...], caption: str) -> str:
    of = "key " if step.across == "key" else ""
    names = "".join(f'<th scope="col">{of}{at + 1}</th>' for at in range(len(rows[0])))
    head = f"<tr><th></th>{names}</tr>\n" if step.across else ""
    body = "".join(
        f'<tr><th scope="row">{step.down} {index + 1}</th>'
        + "".join(_html_cell(step, entry, places, forms) for entry in row)
        + "</tr>\n"
        for index, row in enumerate(rows)
    )
    caption_row = f"<caption>{caption}</caption>\n" if caption else ""
    return f'<div class="scroll"><table>\n{caption_row}{head}{body}</table></div>\n'


def _html_cell(step: Step, entry: MatrixEntry, places: int, forms: tuple[str, ...]) -> str:
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
    marked_text = _ROOT.sub(r"√\1", escape(written).replace("-inf", "−∞").replace("-", "−"))
    marked_text = _INDEX.sub(r"W<sub>\1</sub>", marked_text)
    return _POWER.sub(lambda power: f"<sup>{power[1].strip('()')}</sup>", marked_text)


def markdown(worked: Worked, places: int = 4, show: str = "both") -> str:
    """What is given and all steps, each under a heading of its own."""
    lines = ["# Attention worked through", ""]
    for statement in worked.statements(show):
        lines += [statement.replace("|", r"\|"), ""]
    for step in (*worked.exercise, *worked.steps):
        lines += [f"## {step.title}", "", f"`{step.formula}`", ""]
        for head, rows in enumerate(step.tables):
            lines += [f"Head {head + 1}:", ""] if step.per_head else []
            lines += [*_markdown_table(step, rows, places, forms_of(step, rows, show)), ""]
    return "\n".join(lines)


def _markdown_table(step: Step, rows: Rows, places: int, forms: tuple[str, ...]) -> list[str]:
    names = [f"{step.across} {at + 1}" for at in range(len(rows[0]))] if step.across else [step.title.lower()]
    head = [f"| {step.down} | {' | '.join(names)} |", f"|---{'|---:' * len(names)}|"]
    return head + [
        f"| {index + 1} | {' | '.join(_markdown_cell(entry, places, forms) for entry in row)} |"
        for index, row in enumerate(rows)
    ]


def _markdown_cell(entry: MatrixEntry, places: int, forms: tuple[str, ...]) -> str:
    exact, shown = entry.text or "", entry.decimal(places)
    if "exact" not in forms or exact == shown:
        return shown.replace("-inf", "−∞")
    return f"`{exact}` ≈ {shown}" if "decimal" in forms else f"`{exact}`"


MOST_COLUMNS = 16  # of given matrices in one line; a name and its brackets are as wide as two
WIDEST = 44  # characters of a row of exact forms that have decimals beside them


def latex(worked: Worked, places: int = 4, show: str = "both") -> str:
    """All steps, each a paragraph with its formula and its matrices."""
    lines = [NEEDS, *(inline(statement) + r"\par" for statement in worked.statements(show))]
    lines += ["", r"\paragraph{Exercise}", r"\begin{gather*}"]
    wide = sum(len(rows[0]) + 2 for step in worked.exercise for rows in step.tables)
    between = r",\quad " if wide <= MOST_COLUMNS else " \\\\\n"
    lines += [between.join(_given(step, places, show) for step in worked.exercise), r"\end{gather*}"]
    for step in worked.steps:
        lines += ["", rf"\paragraph{{{step.title}}} ${step_formula(worked, step)}$"]
        for head, rows in enumerate(step.tables):
            label = rf"\text{{head {head + 1}: }}" if step.per_head else ""
            shown = [_matrix(rows, form, places) for form in forms_of(step, rows, show)]
            apart = len(shown) > 1 and _wide(rows)
            between = " \\\\\n\\approx " if apart else r" \approx "
            lines += [r"\begin{gather*}", label + between.join(shown), r"\end{gather*}"]
    return "\n".join(lines) + "\n"


def _given(step: Step, places: int, show: str) -> str:
    """A given matrix behind its name, or one a head beside each other."""
    name = step.formula.upper() if len(step.formula) == 1 else step.formula  # x is a row of X
    return r",\quad ".join(
        (f"{name}^{{({head + 1})}} = " if step.per_head else f"{name} = ")
        + r" \approx ".join(_matrix(rows, form, places) for form in forms_of(step, rows, show))
        for head, rows in enumerate(step.tables)
    )


def step_formula(worked: Worked, step: Step) -> str:
    """The formula of a step over whole matrices, in LaTeX."""
    exercise = worked.given
    source = "Y" if exercise.crosses else "X"
    product = r"Q K^{\top}"
    if exercise.divisor is not None:
        product = rf"\frac{{{product}}}{{{writing.latex(exercise.divisor)}}}"
    elif exercise.scale != 1:
        product = rf"{writing.latex(exercise.scale)} \cdot {product}"
    heads = ", ".join(f"Z_{{{head + 1}}}" for head in range(exercise.heads))
    heads_joined = "Z" if exercise.heads == 1 else f"[{heads}]"
    return {
        "q": f"Q = {_projected(exercise, 'X', 'q')}",
        "k": f"K = {_projected(exercise, source, 'k')}",
        "v": f"V = {_projected(exercise, source, 'v')}",
        "scores": f"S = {product}",
        "masked": r"S_{qk} = -\infty \text{ where the rule hides the key}",
        "exponentials": "e^{S}",
        "sums": r"\sum_k e^{S_{qk}}",
        "weights": r"A_{qk} = e^{S_{qk}} / \sum_k e^{S_{qk}}",
        "mixed": "Z = A V",
        "outputs": _times(exercise, heads_joined, "o")
        if exercise.wo is not None
        else heads_joined
        if exercise.heads > 1
        else "Z = A V",
    }[step.name]


def _projected(exercise: Exercise, source: str, name: str) -> str:
    """`X W_q` over whole matrices, whose rows are tokens; `X` where the matrix was left out."""
    if f"w{name}" not in exercise.left_out:
        return _times(exercise, source, name)
    return source if exercise.heads == 1 else rf"\text{{part of }} {source}"


def _times(exercise: Exercise, rows: str, name: str) -> str:
    return rf"{rows} W_{name}^{{\top}}" if exercise.columns else f"{rows} W_{name}"


def _wide(rows: Rows) -> bool:
    """Whether the exact matrix leaves no room for the decimals beside it."""
    return max(sum(len(entry.text or "") for entry in row) for row in rows) > WIDEST


def _matrix(rows: Rows, form: str, places: int) -> str:
    lines = [" & ".join(_latex_cell(entry, form, places) for entry in row) for row in rows]
    exact = form == "exact" and any("frac" in line for line in lines)
    inside = (" \\\\[10pt]\n" if exact else " \\\\\n").join(lines)
    columns = ("c" if exact else "r") * len(rows[0])
    return f"\\left(\\begin{{array}}{{{columns}}}\n{inside}\n\\end{{array}}\\right)"


def _latex_cell(entry: MatrixEntry, form: str, places: int) -> str:
    return entry.latex if form == "exact" or not entry.value.is_finite() else entry.decimal(places)
