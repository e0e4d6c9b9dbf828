"""tables: CNNs, RNNs and Transformers side by side, and RNN against Transformer in training and at test."""

from __future__ import annotations

from functools import lru_cache

from lattend.web.copies import command, python
from lattend.web.panel import Answer, Copies, Panel, Question
from lattend.web.reports import ReportView, view


class TablesQuestion(Question):
    """Nothing is asked: the tables are formulas."""


class TablesAnswer(Answer):
    """The two tables, each derived from the costs of its layers."""

    architectures: ReportView
    train_test: ReportView


@lru_cache(maxsize=1)
def _tables() -> tuple[ReportView, ReportView, str]:
    from lattend.cost.comparison.architectures import architectures
    from lattend.cost.comparison.train_test import train_test

    reports = architectures().report(), train_test().report()
    return view(reports[0]), view(reports[1]), "\n".join(report.latex() for report in reports)


def answer(question: TablesQuestion) -> TablesAnswer:
    """Parallelism, path length, time and space, in closed form."""
    compared, trained, latex = _tables()
    return TablesAnswer(
        architectures=compared,
        train_test=trained,
        copies=Copies(
            python=python(
                "print(architectures())",
                "print(lt.cost.train_test())",
                imports="from lattend.cost.comparison.architectures import architectures",
            ),
            command="\n".join((command("compare", architectures=True), command("compare", tables=True))),
            latex=latex,
        ),
    )


PANEL = Panel("tables", "CNNs, RNNs and Transformers side by side", answer)
