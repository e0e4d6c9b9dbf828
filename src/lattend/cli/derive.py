"""lattend derive: derivations line by line, each line checked before it is shown."""

from __future__ import annotations

from dataclasses import dataclass

from lattend.cli.command import Answer, Command, argument, flag, option
from lattend.cli.output import say, say_json, width
from lattend.errors import NamingError
from lattend.report.report import Report
from lattend.report.table import Facts

GAME = "game"


def complete_name(incomplete: str) -> list[tuple[str, str]]:
    """Derivations with this beginning, and their summaries."""
    from lattend.study.derivations.draft import listed

    return [(name, summary) for name, summary in listed().items() if name.startswith(incomplete)]


@dataclass(frozen=True)
class DeriveCommand(Command):
    """A derivation, line by line.

    Every line has its reason and how it was checked, for all sizes at once or in exact numbers; a line that
    fails its check is an error, and nothing is shown.

        lattend derive
        lattend derive strided
        lattend derive strided --latex
        lattend derive elbo --out elbo.html
        lattend derive game "p*q - p^2/4" --step h
    """

    name: str | None = argument(
        "NAME", "Which one; without it, all are listed.", None, complete=complete_name
    )
    formula: str | None = argument("F", 'game: the function, such as "p*q - p^2/4"; p*q.', None)
    method: str | None = option("NAME", "game: how both move; alternating.")
    step: str | None = option("H", "game: a number, or h to leave it open; 1.")
    first: str | None = option("q|p", "game: who moves first.")
    latex: bool = flag("Print an align environment.")
    html: bool = flag("Print HTML, the formulas as MathML.")
    out: str | None = option("FILE", "Write: .html, .tex, .json or .txt.", "--out", "-o")

    def answer(self) -> Answer:
        from lattend.study.derivations.draft import derive as derived
        from lattend.study.derivations.draft import listed

        forms = [f"--{form}" for form in ("latex", "html", "json", "out") if getattr(self, form)]
        if len(forms) > 1:
            raise NamingError(f"{' and '.join(forms)} are two forms of one derivation; give one")
        if self.name is None:
            if forms and not self.json:
                raise NamingError(f"{forms[0]} needs NAME; `lattend derive` lists the names")
            return Report("Derivations", [Facts(list(listed().items()))], {"derivations": listed()})
        options = self.options("method step first", f="formula")
        if options and self.name != GAME:
            given_too = "F" if "f" in options else f"--{next(iter(options))}"
            raise NamingError(f"{given_too} belongs to `lattend derive {GAME}`; leave it out")
        derivation = derived(self.name, **options)
        if self.json:
            say_json(derivation.json())
        elif self.out is not None:
            say(f"{derivation.save(self.out)}: {derivation.title}")
        elif self.latex or self.html:
            say((derivation.latex() if self.latex else derivation.html()).rstrip())
        else:
            say(derivation.text(width()))
