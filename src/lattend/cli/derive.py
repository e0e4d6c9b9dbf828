"""lattend derive: derivations line by line, each line checked before it is shown."""

from __future__ import annotations

from typing import Annotated

import typer

from lattend.cli.arguments import Json, argument, option
from lattend.cli.output import say, say_json, show_report, width
from lattend.errors import NamingError
from lattend.report.report import Report
from lattend.report.table import Facts

EXAMPLES = (
    "lattend derive",
    "lattend derive strided",
    "lattend derive strided --latex",
    "lattend derive elbo --out elbo.html",
    'lattend derive game "p*q - p^2/4" --step h',
)
GAME = "game"


def complete_name(incomplete: str) -> list[tuple[str, str]]:
    """Derivations with this beginning, and their summaries."""
    from lattend.study.derivations.draft import listed

    return [(name, summary) for name, summary in listed().items() if name.startswith(incomplete)]


def derive(
    name: Annotated[
        str | None, argument("NAME", "Which one; without it, all are listed.", autocompletion=complete_name)
    ] = None,
    formula: Annotated[str | None, argument("F", 'game: the function, such as "p*q - p^2/4"; p*q.')] = None,
    method: Annotated[str | None, option("NAME", "game: how both move; alternating.")] = None,
    step: Annotated[str | None, option("H", "game: a number, or h to leave it open; 1.")] = None,
    first: Annotated[str | None, option("q|p", "game: who moves first.")] = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print an align environment.")] = False,
    html: Annotated[bool, typer.Option("--html", help="Print HTML, the formulas as MathML.")] = False,
    out: Annotated[str | None, option("FILE", "Write: .html, .tex, .json or .txt.", "--out", "-o")] = None,
    json: Json = False,
) -> None:
    """A derivation, line by line.

    Every line has its reason and how it was checked, for all sizes at once or in exact numbers; a line that
    fails its check is an error, and nothing is shown.
    """
    from lattend.study.derivations.draft import derive as derived
    from lattend.study.derivations.draft import listed

    forms = [
        option_name
        for option_name, is_given in (("--latex", latex), ("--html", html), ("--json", json))
        if is_given
    ]
    if out is not None:
        forms.append("--out")
    if len(forms) > 1:
        raise NamingError(f"{' and '.join(forms)} are two forms of one derivation; give one")
    if name is None:
        if forms and not json:
            raise NamingError(f"{forms[0]} needs NAME; `lattend derive` lists the names")
        show_report(Report("Derivations", [Facts(list(listed().items()))], {"derivations": listed()}), json)
        return
    options = {"f": formula, "method": method, "step": step, "first": first}
    options = {option: value for option, value in options.items() if value is not None}
    if options and name != GAME:
        given_too = "F" if formula is not None else f"--{next(iter(options))}"
        raise NamingError(f"{given_too} belongs to `lattend derive {GAME}`; leave it out")
    derivation = derived(name, **options)
    if json:
        say_json(derivation.json())
    elif out is not None:
        say(f"{derivation.save(out)}: {derivation.title}")
    elif latex or html:
        say((derivation.latex() if latex else derivation.html()).rstrip())
    else:
        say(derivation.text(width()))
