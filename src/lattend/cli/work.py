"""lattend work: attention worked through by hand, and an answer judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lattend.cli.arguments import At, Json, argument, complete_rule, option, read_numbers
from lattend.cli.failures import NO, YES
from lattend.cli.output import say, say_json, width
from lattend.errors import NamingError

if TYPE_CHECKING:
    from lattend.study.worked.work import Worked

EXAMPLES = (
    "lattend work --example",
    "lattend work --example --rule causal --scale sqrt --out weights.png",
    'lattend work --tokens "1,2;2,0;0,1"',
    'lattend work --tokens "1 2;2 0;0 1" --wq "1 1;0 1" --wk "1 0;0 0" --columns',
    'lattend work --q "1,2;2,0" --k "1,0;0,1;1,1" --v "1;2;3" --scale sqrt',
    "lattend work head.json --out head.tex",
    "lattend work head.json --check answer.json",
)
ROWS = "FILE|ROWS"
FORMS = ("terminal", "html", "latex", "markdown")


def work(
    file: Annotated[
        str | None,
        argument(
            "FILE",
            "JSON or .npz with tokens (wq, wk, wv, wo, memory, rule, scale, heads, columns), or q, k and v; "
            "or a folder.",
        ),
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Four tokens of two numbers, worked through.")
    ] = False,
    tokens: Annotated[
        str | None,
        option(ROWS, 'One between semicolons, "1,2;2,0" or "1 2;2 0"; or a .json, .csv, .npy or .npz.'),
    ] = None,
    wq: Annotated[str | None, option(ROWS, "Makes queries of tokens: q = x W_q; the identity.")] = None,
    wk: Annotated[str | None, option(ROWS, "Makes keys; the identity.")] = None,
    wv: Annotated[str | None, option(ROWS, "Makes values; the identity.")] = None,
    wo: Annotated[str | None, option(ROWS, "Multiplies the outputs in the end.")] = None,
    columns: Annotated[
        bool, typer.Option("--columns", help="Tokens are columns, q = W_q x; else rows, q = x W_q.")
    ] = False,
    memory: Annotated[str | None, option(ROWS, "Where keys and values come from; the tokens.")] = None,
    q: Annotated[str | None, option(ROWS, "Queries themselves, with --k and --v, and no tokens.")] = None,
    k: Annotated[str | None, option(ROWS, "Keys.")] = None,
    v: Annotated[str | None, option(ROWS, "Values.")] = None,
    rule: Annotated[
        str | None, option("RULE", "The attention mask, as a rule.", autocompletion=complete_rule)
    ] = None,
    scale: Annotated[str | None, option("NUMBER|sqrt", "Times the scores; sqrt is 1/sqrt(D).")] = None,
    heads: Annotated[int | None, option("H", "Heads that share the columns.")] = None,
    at: At = None,
    places: Annotated[int | None, option("N", "Decimals; 4.")] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Exact forms alone.")] = False,
    decimal: Annotated[bool, typer.Option("--decimal", help="Decimals alone.")] = False,
    form: Annotated[str | None, option("|".join(FORMS), "What is printed.")] = None,
    check: Annotated[
        str | None, option("ANSWER.json", 'Judge an answer, {"weights": [["0.1966", …], …]}.')
    ] = None,
    out: Annotated[
        str | None,
        option(
            "FILE",
            "Write: .html, .tex, .md, .json, .txt; the weights: .svg, .png, .pdf, .tikz.",
            "--out",
            "-o",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Attention worked through: every number exact and in decimals.

    Queries, keys, values, scores, exponentials, row sums, weights and outputs, as tables. Tokens are rows,
    q = x W_q, or with --columns columns, q = W_q x; a matrix left out is the identity. With --check, the
    numbers of an answer are judged, each within half a unit of its last digit, and a slip is told once with
    what follows from it; the exit code is 1 when there is one.
    """
    if exact and decimal:
        raise NamingError("--exact and --decimal leave nothing to print; give one, or none for both")
    if form is not None and form not in FORMS:
        raise NamingError(f"--form is one of {', '.join(FORMS)}, not {form}")
    if form is not None and out is not None:
        raise NamingError("the ending of --out says its form; leave --form out")
    for name, is_given in (("--out", out), ("--form", form), ("--exact", exact), ("--decimal", decimal)):
        if check is not None and is_given:
            raise NamingError(f"--check prints its verdict; leave {name} away, or --check")
    sources = {"tokens": tokens, "wq": wq, "wk": wk, "wv": wv, "wo": wo, "memory": memory}
    sources |= {"q": q, "k": k, "v": v}
    options = {"rule": rule, "scale": scale, "heads": heads, "columns": columns or None, **read_numbers(at)}
    from lattend.study.worked.work import work as work_out

    case = _case(file, example, sources)
    case |= {name: value for name, value in options.items() if value is not None}
    worked = work_out(**case)
    if check is not None:
        return _judged(worked, check, places, json)
    show = "exact" if exact else "decimal" if decimal else "both"
    many = 4 if places is None else places
    file_out = None if out is None else str(worked.save(out, many, show))
    if json:
        say_json({**worked.json(many), "file": file_out})
    elif file_out is not None:
        say(f"{file_out}: attention worked through, {'; '.join(worked.facts[:2])}")
    elif form in (None, "terminal"):
        say(worked.terminal(width(), many, show))
    else:
        forms = {"html": worked.html, "latex": worked.latex, "markdown": worked.markdown}
        say(forms[form](many, show).rstrip())
    return YES


def _case(file: str | None, example: bool, sources: dict[str, str | None]) -> dict[str, Any]:
    """The arguments of the work: an example or a file, with matrices from options in place of its own."""
    from lattend.cli.files import read_case, read_matrix
    from lattend.study.exact.numbers import exact
    from lattend.study.worked.work import EXAMPLE

    if file is not None and example:
        raise NamingError("FILE and --example are two pieces of work; give one")
    if file is not None and ";" in file:
        raise NamingError(f'FILE is a file; numbers are given as --tokens "{file}"')
    case: dict[str, Any] = dict(EXAMPLE) if example else {} if file is None else read_case(file)
    for name, source in sources.items():
        if source is not None:
            case[name] = read_matrix(name, source, exact)
    if not {"tokens", "q", "k", "v"} & {*case}:
        given_ones = [f"--{name}" for name, source in sources.items() if source is not None]
        message = f"work has {' and '.join(given_ones)}, and needs" if given_ones else "work needs"
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
