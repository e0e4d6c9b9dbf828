"""Worked steps as text: tables in a terminal, HTML, Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import zip_longest
from typing import TYPE_CHECKING

from lattend.draw.picture import terminal_columns
from lattend.errors import NamingError
from lattend.report.latex import NEEDS, inline
from lattend.report.numbers import fixed
from lattend.report.table import wrap_text
from lattend.study.exact import writing
from lattend.study.exact.writing import format_exact
from lattend.study.worked.entry import MatrixEntry, Rows, Step, plain, too_long
from lattend.study.worked.inputs import Exercise

if TYPE_CHECKING:
    from lattend.study.worked.work import Worked

SHOWN = ("both", "exact", "decimal")
MOST_ROWS = 16  # rows, and columns, of a table that is printed
NARROWEST = 20
GAP = "   "
Cells = list[list[str]]


def terminal(worked: Worked, width: int | None = None, places: int = 4, show: str = "both") -> str:
    """The exercise and all steps, in lines no longer than `width`; short tables side by side."""
    columns = max(NARROWEST, width or terminal_columns())
    lines = wrap_text("Attention worked through", columns)
    for statement in worked.statements(show):
        lines += wrap_text(statement, columns)
    for steps in (worked.exercise, worked.steps[:3], *((step,) for step in worked.steps[3:])):
        blocks = [step_lines(step, columns, places, show) for step in steps]
        lines += ["", *_beside(blocks, columns, between=[""])]
    return "\n".join(line.rstrip() for line in lines)


def step_lines(step: Step, width: int | None = None, places: int = 4, show: str = "both") -> list[str]:
    """One step: its title and formula, then a table, or one a head."""
    columns = max(NARROWEST, width or terminal_columns())
    lines = wrap_text(f"{step.title}: {step.formula}", columns)
    tables = [_table(step, rows, columns, places, forms_of(step, rows, show)) for rows in step.tables]
    if step.per_head:
        tables = [[f"head {head + 1}", *table] for head, table in enumerate(tables)]
    lines += _beside(tables, columns)
    return [line.rstrip() for line in lines]


def step_text(step: Step) -> str:
    """One step by itself, and why it has no exact forms where it has none."""
    columns = max(NARROWEST, terminal_columns())
    notes = [part for note in too_long([step]) for part in wrap_text(note, columns)]
    return "\n".join([*step_lines(step, columns), *notes])


def _beside(blocks: list[list[str]], width: int, between: Sequence[str] = ()) -> list[str]:
    """The blocks in rows, as many in each as fit."""
    lines: list[str] = []
    while blocks:
        many = 1
        while many < len(blocks) and _width(_row(blocks[: many + 1])) <= width:
            many += 1
        lines += [*(between if lines else ()), *_row(blocks[:many])]
        blocks = blocks[many:]
    return lines


def _row(blocks: list[list[str]]) -> list[str]:
    wide = [_width(block) for block in blocks]
    return [
        GAP.join(part.ljust(columns) for part, columns in zip(parts, wide, strict=True)).rstrip()
        for parts in zip_longest(*blocks, fillvalue="")
    ]


def forms_of(step: Step, rows: Rows, show: str) -> tuple[str, ...]:
    """The forms that a table shows: exact, decimal or both; one where the two are alike or too long."""
    if show not in SHOWN:
        raise NamingError(f"show is one of {', '.join(SHOWN)}, not {show!r}")
    if show == "decimal" or not step.readable:
        return ("decimal",)
    return ("exact",) if show == "exact" or plain(rows) else ("exact", "decimal")


def _table(step: Step, rows: Rows, width: int, places: int, forms: tuple[str, ...]) -> list[str]:
    shown = [row[:MOST_ROWS] for row in rows[:MOST_ROWS]]
    left_out = (len(rows) - len(shown), len(rows[0]) - len(shown[0]))
    exact = [[entry.text or "" for entry in row] for row in shown]
    rounded = [[entry.decimal(places) for entry in row] for row in shown]
    lines = _arranged(step, exact, rounded, width, forms)
    if any(left_out):
        parts = zip(left_out, ("row", "column"), strict=True)
        rest = " and ".join(f"{many} more {name}{'s' if many > 1 else ''}" for many, name in parts if many)
        lines += wrap_text(f"{rest} not printed; JSON, HTML, Markdown and LaTeX have them", width)
    return lines


def _arranged(step: Step, exact: Cells, rounded: Cells, width: int, forms: tuple[str, ...]) -> list[str]:
    """The cells side by side, below each other, or one a line: the first that is narrow enough."""
    if "exact" not in forms:
        return _in_groups(step, rounded, width, right=True)
    if forms == ("exact",):
        return _in_groups(step, exact, width, right=exact == rounded)
    left, numbers = _block(step, exact, right=False), _block(step, rounded, right=True)
    margin = len(str(len(exact))) + 2
    if _width(left) + len(GAP) + _width(numbers) - margin <= width:
        return _beside([left, [line[margin:] for line in numbers]], width)
    longest = max(len(form) for row in exact for form in row)
    if _width(numbers) <= width and (_width(left) <= width or margin + 2 * longest + 2 <= width):
        return [*_in_groups(step, exact, width, right=False), *numbers]
    return _listed(step, exact, rounded, width)


def _block(step: Step, cells: Cells, right: bool, first: int = 0) -> list[str]:
    """Rows under the numbers of the columns."""
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    names = [str(first + index + 1) for index in range(len(wide))]
    wide = [max(width, len(name)) for width, name in zip(wide, names, strict=True)]
    margin = len(str(len(cells)))
    lines = [_line(" " * margin, names, wide, right)] if step.across else []
    return lines + [_line(f"{index + 1:>{margin}}", row, wide, right) for index, row in enumerate(cells)]


def _line(name: str, cells: Sequence[str], wide: Sequence[int], right: bool) -> str:
    return "  ".join(
        [name, *(c.rjust(w) if right else c.ljust(w) for c, w in zip(cells, wide, strict=True))]
    ).rstrip()


def _in_groups(step: Step, cells: Cells, width: int, right: bool) -> list[str]:
    """Rows with as many columns at a time as fit."""
    margin = len(str(len(cells)))
    lines: list[str] = []
    first = last = 0
    while first < len(cells[0]):
        part = [row[first : first + 1] for row in cells]
        last = first + 1
        while last < len(cells[0]):
            wider = [row[first : last + 1] for row in cells]
            if _width(_block(step, wider, right, first)) > width:
                break
            part, last = wider, last + 1
        lines += _block(step, part, right, first)
        first = last
    return [piece for line in lines for piece in _folded(line, width, margin)]


def _folded(line: str, width: int, margin: int) -> list[str]:
    """A line that is still too long with its rest under its first cell."""
    if len(line) <= width:
        return [line]
    first, *rest = wrap_text(line, width)
    return [
        first,
        *(f"{' ' * (margin + 2)}{part}" for piece in rest for part in wrap_text(piece, width - margin - 2)),
    ]


def _listed(step: Step, exact: Cells, rounded: Cells, width: int) -> list[str]:
    """One number a line, its decimal behind it, or below it where there is no room."""
    lines: list[str] = []
    margin = len(str(len(exact[0])))
    longest = max(len(form) for forms in exact for form in forms)
    for index, (forms, numbers) in enumerate(zip(exact, rounded, strict=True)):
        lines.append(f"{step.down} {index + 1}")
        for at, (form, shown) in enumerate(zip(forms, numbers, strict=True)):
            name = f"  {at + 1:>{margin}}  " if step.across else "  "
            if form == shown:
                parts = [form]
            elif len(name) + longest + 2 + len(shown) <= width:
                parts = [f"{form:<{longest}}  {shown}"]
            else:
                parts = [*wrap_text(form, width - len(name)), shown]
            lines += [f"{name if not i else ' ' * len(name)}{part}" for i, part in enumerate(parts)]
    return lines


def _width(lines: Sequence[str]) -> int:
    return max(map(len, lines))


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
    """The exercise and all steps, each under its own heading."""
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
