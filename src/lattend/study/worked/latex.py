r"""LaTeX: the steps as matrices, exact \approx decimal, for a document that uses amsmath."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.report.latex import NEEDS, inline
from lattend.study.exact import writing
from lattend.study.worked.entry import MatrixEntry
from lattend.study.worked.inputs import Exercise
from lattend.study.worked.step import Rows, Step
from lattend.study.worked.terminal import forms_of

if TYPE_CHECKING:
    from lattend.study.worked.work import Worked

MOST_COLUMNS = 16  # of given matrices in one line; a name and its brackets are as wide as two
WIDEST = 44  # characters of a row of exact forms that have decimals beside them


def latex(worked: Worked, places: int = 4, show: str = "both") -> str:
    """All steps, each a paragraph with its formula and its matrices."""
    lines = [NEEDS, *(inline(said) + r"\par" for said in worked.statements(show))]
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
    given = worked.given
    source = "Y" if given.crosses else "X"
    product = r"Q K^{\top}"
    if given.divisor is not None:
        product = rf"\frac{{{product}}}{{{writing.latex(given.divisor)}}}"
    elif given.scale != 1:
        product = rf"{writing.latex(given.scale)} \cdot {product}"
    heads = ", ".join(f"Z_{{{head + 1}}}" for head in range(given.heads))
    joined = "Z" if given.heads == 1 else f"[{heads}]"
    return {
        "q": f"Q = {_projected(given, 'X', 'q')}",
        "k": f"K = {_projected(given, source, 'k')}",
        "v": f"V = {_projected(given, source, 'v')}",
        "scores": f"S = {product}",
        "masked": r"S_{qk} = -\infty \text{ where the rule hides the key}",
        "exponentials": "e^{S}",
        "sums": r"\sum_k e^{S_{qk}}",
        "weights": r"A_{qk} = e^{S_{qk}} / \sum_k e^{S_{qk}}",
        "mixed": "Z = A V",
        "outputs": _times(given, joined, "o")
        if given.wo is not None
        else joined
        if given.heads > 1
        else "Z = A V",
    }[step.name]


def _projected(given: Exercise, source: str, name: str) -> str:
    """`X W_q` over whole matrices, whose rows are tokens; `X` where the matrix was left out."""
    if f"w{name}" not in given.left_out:
        return _times(given, source, name)
    return source if given.heads == 1 else rf"\text{{part of }} {source}"


def _times(given: Exercise, rows: str, name: str) -> str:
    return rf"{rows} W_{name}^{{\top}}" if given.columns else f"{rows} W_{name}"


def _wide(rows: Rows) -> bool:
    """Whether the exact matrix leaves no room for the decimals beside it."""
    return max(sum(len(entry.text or "") for entry in row) for row in rows) > WIDEST


def _matrix(rows: Rows, form: str, places: int) -> str:
    lines = [" & ".join(_cell(entry, form, places) for entry in row) for row in rows]
    exact = form == "exact" and any("frac" in line for line in lines)
    inside = (" \\\\[10pt]\n" if exact else " \\\\\n").join(lines)
    columns = ("c" if exact else "r") * len(rows[0])
    return f"\\left(\\begin{{array}}{{{columns}}}\n{inside}\n\\end{{array}}\\right)"


def _cell(entry: MatrixEntry, form: str, places: int) -> str:
    return entry.latex if form == "exact" or not entry.value.is_finite() else entry.decimal(places)
