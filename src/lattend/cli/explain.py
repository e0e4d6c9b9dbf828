"""lattend explain: what attention would do under a rule: its tiles, its kernel, and what is wasted."""

from __future__ import annotations

from itertools import accumulate
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
    "lattend explain causal --n 4096 --padding 4096,1000,37 --softcap 50 --device cuda",
    "lattend explain causal --sequences 4096,1000,37",
)


def explain(
    rule: RuleText,
    at: At = None,
    n: Annotated[int | None, option("N", "Positions on a line, as --at n=N.", "--n")] = None,
    head_dim: Annotated[int, typer.Option(metavar="D", help="Numbers in a query of one head.")] = 64,
    heads: Annotated[int | None, option("H", "Heads; 8 unless the rule says.")] = None,
    kv_heads: Annotated[int | None, option("H", "Heads of keys and values, where they are fewer.")] = None,
    batch: Annotated[
        int | None, option("B", "Elements of the batch; 1, or as many as --padding has.")
    ] = None,
    dtype: Annotated[
        str, typer.Option(metavar="DTYPE", help="bfloat16, float16, float32 or float64.")
    ] = "float32",
    device: Annotated[
        str, typer.Option(metavar="cpu|cuda", help="Where attention runs; it need not be here.")
    ] = "cpu",
    kernel: Annotated[str | None, option("NAME", "sdpa, triton, native, cpu, dense or reference.")] = None,
    padding: Annotated[
        str | None, option("LENGTHS", "How many keys of each batch element are real: 4096,1000.")
    ] = None,
    sequences: Annotated[
        str | None, option("LENGTHS", "Lengths of sequences laid end to end, as cu_seqlens has them.")
    ] = None,
    softcap: Annotated[float | None, option("C", "Scores s become C·tanh(s/C).")] = None,
    sinks: Annotated[
        bool, typer.Option("--sinks", help="A logit a head takes part in each softmax.")
    ] = False,
    dropout: Annotated[float, typer.Option(metavar="P", help="The share of weights that are dropped.")] = 0.0,
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
    for name, value in (("n", n), ("heads", heads)):
        if value is not None:
            if name in values:
                raise NamingError(f"{name} is given by --{name} and by --at; give it once")
            values[name] = value
    chosen = chosen.at(**{name: values.pop(name) for name in chosen.parameters if name in values})
    from lattend.attend.explain import explain as explaining

    explanation = explaining.explain(
        chosen,
        kernel=kernel,
        dtype=dtype,
        device=device,
        head_dim=head_dim,
        kv_heads=kv_heads,
        batch=batch,
        padding=_lengths("--padding", padding),
        cu_seqlens=None if sequences is None else [0, *accumulate(_lengths("--sequences", sequences) or [])],
        softcap=softcap,
        sinks=sinks,
        dropout=dropout,
        **values,
    )
    if tiles:
        show(explanation.tile_map(*spans).draw(explanation.title), out, json)
        return NO if explanation.refused else YES
    file = None if out is None else str(explanation.picture().save(out))
    if json:
        say_json({**explanation.json(), "file": file})
    else:
        say(explanation.text(width()) if file is None else f"{file}: {explanation.title}")
    return NO if explanation.refused else YES


def _lengths(name: str, text: str | None) -> list[int] | None:
    """`4096,1000` as numbers."""
    if text is None:
        return None
    numbers = [number.strip() for number in text.split(",")]
    if not all(number.isdecimal() for number in numbers):
        raise TextError(f"{name} is a list of lengths, as in 4096,1000,37", text, 0, len(text))
    return [int(number) for number in numbers]


def _span(name: str, text: str | None) -> tuple[int, int] | None:
    """`0:1024` as (0, 1024)."""
    if text is None:
        return None
    first, _, end = text.partition(":")
    if not (first.strip().isdecimal() and end.strip().isdecimal()):
        raise TextError(f"{name} is the first position and the end, as in 0:1024", text, 0, len(text))
    return int(first), int(end)
