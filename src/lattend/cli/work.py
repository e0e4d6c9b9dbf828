"""lattend work: attention worked through by hand, and an answer judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lattend.cli.arguments import at_option, complete_rule, read_numbers
from lattend.cli.command import Answer, Command, argument, flag, option
from lattend.cli.failures import NO, YES
from lattend.cli.output import say, say_json, width
from lattend.errors import NamingError

if TYPE_CHECKING:
    from lattend.study.worked.work import Worked

ROWS = "FILE|ROWS"
FORMS = ("terminal", "html", "latex", "markdown")


@dataclass(frozen=True)
class WorkCommand(Command):
    """Attention worked through: every number exact and in decimals.

    Queries, keys, values, scores, exponentials, row sums, weights and outputs, as tables. Tokens are rows,
    q = x W_q, or with --columns columns, q = W_q x; a matrix left out is the identity. With --check, the
    numbers of an answer are judged, each within half a unit of its last digit, and a slip is told once with
    what follows from it; the exit code is 1 when there is one.

        lattend work --example
        lattend work --example --rule causal --scale sqrt --out weights.png
        lattend work --tokens "1,2;2,0;0,1"
        lattend work --tokens "1 2;2 0;0 1" --wq "1 1;0 1" --wk "1 0;0 0" --columns
        lattend work --q "1,2;2,0" --k "1,0;0,1;1,1" --v "1;2;3" --scale sqrt
        lattend work head.json --out head.tex
        lattend work head.json --check answer.json
    """

    file: str | None = argument(
        "FILE",
        "JSON or .npz with tokens (wq, wk, wv, wo, memory, rule, scale, heads, columns), or q, k and v; "
        "or a folder.",
        None,
    )
    example: bool = flag("Four tokens of two numbers, worked through.")
    tokens: str | None = option(
        ROWS, 'One between semicolons, "1,2;2,0" or "1 2;2 0"; or a .json, .csv, .npy or .npz.'
    )
    wq: str | None = option(ROWS, "Makes queries of tokens: q = x W_q; the identity.")
    wk: str | None = option(ROWS, "Makes keys; the identity.")
    wv: str | None = option(ROWS, "Makes values; the identity.")
    wo: str | None = option(ROWS, "Multiplies the outputs in the end.")
    columns: bool = flag("Tokens are columns, q = W_q x; else rows, q = x W_q.")
    memory: str | None = option(ROWS, "Where keys and values come from; the tokens.")
    q: str | None = option(ROWS, "Queries themselves, with --k and --v, and no tokens.")
    k: str | None = option(ROWS, "Keys.")
    v: str | None = option(ROWS, "Values.")
    rule: str | None = option("RULE", "The attention mask, as a rule.", complete=complete_rule)
    scale: str | None = option("NUMBER|sqrt", "Times the scores; sqrt is 1/sqrt(D).")
    heads: int | None = option("H", "Heads that share the columns.")
    at: list[str] | None = at_option()
    places: int | None = option("N", "Decimals; 4.")
    exact: bool = flag("Exact forms alone.")
    decimal: bool = flag("Decimals alone.")
    form: str | None = option("|".join(FORMS), "What is printed.")
    check: str | None = option("ANSWER.json", 'Judge an answer, {"weights": [["0.1966", …], …]}.')
    out: str | None = option(
        "FILE", "Write: .html, .tex, .md, .json, .txt; the weights: .svg, .png, .pdf, .tikz.", "--out", "-o"
    )

    def answer(self) -> Answer:
        if self.exact and self.decimal:
            raise NamingError("--exact and --decimal leave nothing to print; give one, or none for both")
        if self.form is not None and self.form not in FORMS:
            raise NamingError(f"--form is one of {', '.join(FORMS)}, not {self.form}")
        if self.form is not None and self.out is not None:
            raise NamingError("the ending of --out says its form; leave --form out")
        for name in ("out", "form", "exact", "decimal"):
            if self.check is not None and getattr(self, name):
                raise NamingError(f"--check prints its verdict; leave --{name} away, or --check")
        from lattend.study.worked.work import work as work_out

        case = _case(self.file, self.example, self.options("tokens wq wk wv wo memory q k v"))
        case |= self.options("rule scale heads columns") | read_numbers(self.at)
        worked = work_out(**case)
        if self.check is not None:
            return _judged(worked, self.check, self.places, self.json)
        show = "exact" if self.exact else "decimal" if self.decimal else "both"
        many = 4 if self.places is None else self.places
        file_out = None if self.out is None else str(worked.save(self.out, many, show))
        if self.json:
            say_json({**worked.json(many), "file": file_out})
        elif file_out is not None:
            say(f"{file_out}: attention worked through, {'; '.join(worked.facts[:2])}")
        elif self.form in (None, "terminal"):
            say(worked.terminal(width(), many, show))
        else:
            forms = {"html": worked.html, "latex": worked.latex, "markdown": worked.markdown}
            say(forms[self.form](many, show).rstrip())
        return YES


def _case(file: str | None, example: bool, sources: dict[str, str]) -> dict[str, Any]:
    """The arguments of the work: an example or a file, with matrices from options in place of its own."""
    from lattend.cli.files import read_case, read_matrix
    from lattend.study.exact.numbers import exact
    from lattend.study.worked.work import EXAMPLE

    if file is not None and example:
        raise NamingError("FILE and --example are two pieces of work; give one")
    if file is not None and ";" in file:
        raise NamingError(f'FILE is a file; numbers are given as --tokens "{file}"')
    case: dict[str, Any] = dict(EXAMPLE) if example else {} if file is None else read_case(file)
    case |= {name: read_matrix(name, source, exact) for name, source in sources.items()}
    if not {"tokens", "q", "k", "v"} & {*case}:
        options = " and ".join(f"--{name}" for name in sources)
        message = f"work has {options}, and needs" if options else "work needs"
        raise NamingError(f'{message} FILE, --example or --tokens, as in --tokens "1,2;2,0"')
    return case


def _judged(worked: Worked, answer: str, places: int | None, json: bool) -> int:
    from lattend.cli.files import read_json
    from lattend.study.worked.entry import check_places
    from lattend.study.worked.judge import judge

    if places is not None:
        check_places(places)
    judgement = judge(worked, read_json(answer), places, nothing="null")
    if json:
        say_json(judgement.json())
    else:
        say(judgement.terminal(width()))
    return YES if judgement else NO
