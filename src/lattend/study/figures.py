"""Forms of results: charts beside what a report says, whole pages, and files by their ending."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from html import escape
from pathlib import Path

from lattend.draw.charts.chart import Chart
from lattend.draw.picture import Picture
from lattend.errors import LattendError
from lattend.report.report import Report
from lattend.report.table import Facts, Table


def figure(report: Report, charts: tuple[Chart, ...] = (), caption: tuple[str, ...] = ()) -> Picture:
    """The report's title, sentences, facts and table as a picture with these charts."""
    sentences = tuple(part for part in report.parts if isinstance(part, str))
    facts = tuple(row for part in report.parts if isinstance(part, Facts) for row in part.rows)
    table = next(((part.head, *part.rows) for part in report.parts if isinstance(part, Table)), ())
    return Picture(
        report.title, (), caption, sentences, facts=facts, table=table, charts=charts, data=report.data
    )


def page(title: str, body: str) -> str:
    """A whole HTML page with this body."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )


def checked_path(path: str | os.PathLike[str], what: str, endings: Collection[str]) -> Path:
    """The path, where its ending is one of these and its folder is there."""
    path = Path(path)
    if path.suffix.lower() not in endings:
        raise LattendError(f'cannot {what} as "{path}": the ending is not one of {", ".join(endings)}')
    if not path.parent.is_dir():
        raise LattendError(f'cannot save "{path}": there is no folder "{path.parent}"; make it first')
    return path


def save_form(path: str | os.PathLike[str], what: str, forms: Mapping[str, Callable[[], str]]) -> Path:
    """Writes the text of the form that the path's ending names, and gives the path."""
    path = checked_path(path, what, forms)
    path.write_text(forms[path.suffix.lower()](), encoding="utf-8")
    return path
