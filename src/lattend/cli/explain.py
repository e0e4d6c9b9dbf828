"""lattend explain: what attention would do under a rule: its tiles, its kernel, and what is wasted."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lattend.cli.arguments import At, Json, RuleText, option, read_numbers, read_rule
from lattend.cli.failures import NO, YES
from lattend.cli.output import say, say_json, show, width
from lattend.errors import NamingError, TextError

EXAMPLES = (
    "lattend explain strided --at n=65536,t=255 --device cuda --dtype bfloat16",
    'lattend explain "sparse_fixed(l=128, c=8)" --n 16384 --out tiles.svg',
    'lattend explain "neighbourhood(6)" --at rows=256,cols=256 --kernel cpu',
    "lattend explain strided --at n=65536,t=255 --tiles --queries 0:4096 --keys 0:4096",
)


def explain(
    rule: RuleText,
    at: At = None,
    n: Annotated[int | None, option("N", "Positions on a line, as --at n=N.", "--n")] = None,
    head_dim: Annotated[int, typer.Option(metavar="D", help="Numbers in a query of one head.")] = 64,
    heads: Annotated[int | None, option("H", "Heads; 8 unless the rule says.")] = None,
    kv_heads: Annotated[int | None, option("H", "Heads of keys and values, where they are fewer.")] = None,
    batch: Annotated[int, typer.Option(metavar="B", help="Elements of the batch.")] = 1,
    dtype: Annotated[
        str, typer.Option(metavar="DTYPE", help="bfloat16, float16, float32 or float64.")
    ] = "float32",
    device: Annotated[
        str, typer.Option(metavar="cpu|cuda", help="Where attention runs; it need not be here.")
    ] = "cpu",
    kernel: Annotated[str | None, option("NAME", "sdpa, triton, cpu, dense or reference.")] = None,
    tiles: Annotated[
        bool, typer.Option("--tiles", help="Where pairs are computed, and how many of them are attended.")
    ] = False,
    queries: Annotated[str | None, option("FIRST:END", "With --tiles: these alone, as in 0:1024.")] = None,
    keys: Annotated[str | None, option("FIRST:END", "With --tiles: these alone.")] = None,
    out: Annotated[
        str | None, option("FILE", "Draw the tiles: .svg, .png, .pdf, .tex, .txt.", "--out", "-o")
    ] = None,
    json: Json = False,
) -> int:
    """What attention would do under a rule.

    The pairs that are needed, executed and dense; the parts of the plan and their tiles; which kernel
    runs it and why not the others; how long it should take. Nothing is computed, and no GPU is needed.
    With --tiles, a map of a rule on a line: boxes of pairs, shaded by how many run.
    The exit code is 1 when no kernel can run it.
    """
    chosen, spans = read_rule(rule), (_span("--queries", queries), _span("--keys", keys))
    if any(spans) and not tiles:
        raise NamingError(f"{'--queries' if spans[0] else '--keys'} belongs to --tiles; give both")
    values: dict[str, Any] = {**read_numbers(at)}
    for name, given in (("n", n), ("heads", heads)):
        if given is not None:
            if name in values:
                raise NamingError(f"{name} is given by --{name} and by --at; give it once")
            values[name] = given
    chosen = chosen.at(**{name: values.pop(name) for name in chosen.parameters if name in values})
    from lattend.attend.explain import explain as explaining

    found = explaining.explain(
        chosen,
        kernel=kernel,
        dtype=dtype,
        device=device,
        head_dim=head_dim,
        kv_heads=kv_heads,
        batch=batch,
        **values,
    )
    if tiles:
        show(found.tile_map(*spans).draw(found.title), out, json)
        return NO if found.refused else YES
    file = None if out is None else str(found.picture().save(out))
    if json:
        say_json({**found.json(), "file": file})
    else:
        say(found.text(width()) if file is None else f"{file}: {found.title}")
    return NO if found.refused else YES


def _span(name: str, text: str | None) -> tuple[int, int] | None:
    """`0:1024` as (0, 1024)."""
    if text is None:
        return None
    first, _, end = text.partition(":")
    if not (first.strip().isdecimal() and end.strip().isdecimal()):
        raise TextError(f"{name} is the first position and the end, as in 0:1024", text, 0, len(text))
    return int(first), int(end)
