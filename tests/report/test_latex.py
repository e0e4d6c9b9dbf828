"""LaTeX of reports: ASCII alone, formulas as mathematics, signs that LaTeX reads as its own escaped."""

from __future__ import annotations

from lattend.report.latex import escape
from lattend.report.maths import Maths, Sentence
from lattend.report.report import Report
from lattend.report.table import Facts, Table


def test_a_report_is_a_table_and_paragraphs() -> None:
    half = Maths("n^2/2", r"\frac{n^{2}}{2}")
    report = Report(
        "3 × 3 kernel, 50% & more",
        [
            Table(("", "pairs"), [("causal", half), ("full", "1.5e−3")]),
            Facts([("time", "−2 µs")]),
            Sentence("passes at ", Maths("n <= 3", r"n \le 3"), ", k <= q"),
        ],
    )
    assert report.latex().splitlines()[1:] == [
        r"\noindent\textbf{3 \ensuremath{\times} 3 kernel, 50\% \& more}\par",
        r"\noindent \begin{tabular}{ll}",
        r" & pairs \\",
        r"\hline",
        r"causal & $\frac{n^{2}}{2}$ \\",
        r"full & $1.5 \times 10^{-3}$ \\",
        r"\end{tabular}\par",
        r"\noindent \begin{tabular}{ll}",
        r"time & \ensuremath{-}2 \ensuremath{\mu}s \\",
        r"\end{tabular}\par",
        r"\noindent passes at $n \le 3$, k \ensuremath{\le} q\par",
    ]


def test_every_sign_has_a_spelling() -> None:
    assert escape("é 🦆 ﬁ").isascii()
