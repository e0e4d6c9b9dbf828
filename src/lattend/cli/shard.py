"""lattend shard: a rule over many devices: who sends which keys to whom, balance and predicted time."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lattend.cli.arguments import At, Json, RuleText, option, read_numbers, read_rule
from lattend.cli.output import say, say_json, width
from lattend.errors import NamingError, TextError

EXAMPLES = (
    "lattend shard strided --at n=1048576,t=4095 --ranks 8 --heads 32 --kv-heads 8 --head-dim 128",
    "lattend shard strided --at n=64,t=5 --ranks 8 --out shards.svg",
    "lattend shard causal --n 1000000000 --ranks 1024 --heads 32 --kv-heads 8 --strategies -o chart.png",
    'lattend shard "neighbourhood(6)" --at rows=256,cols=256 --ranks 8 --cut 4x2',
    "lattend shard causal --n 65536 --ranks 16 --cluster machine=A100,node=4,infiniband=25GB/s",
)


def shard(
    rule: RuleText,
    at: At = None,
    n: Annotated[int | None, option("N", "Positions on a line, as --at n=N.", "--n")] = None,
    ranks: Annotated[int, typer.Option(metavar="R", help="Devices that share the positions.")] = 8,
    heads: Annotated[int, typer.Option(metavar="H", help="Heads of queries.")] = 1,
    kv_heads: Annotated[int | None, option("H", "Heads of keys and values, where they are fewer.")] = None,
    head_dim: Annotated[int, typer.Option(metavar="D", help="Numbers in a query of one head.")] = 64,
    batch: Annotated[int, typer.Option(metavar="B", help="Elements of the batch.")] = 1,
    dtype: Annotated[
        str, typer.Option(metavar="DTYPE", help="bfloat16, float16, float32, float64 or fp8.")
    ] = "bfloat16",
    cut: Annotated[
        str | None, option("CUT", "contiguous, zigzag, balanced, or blocks of an image: 4x2. The quickest.")
    ] = None,
    cluster: Annotated[
        str | None, option("NUMBERS", "The machines: machine=H100,node=8,nvlink=450GB/s,infiniband=50GB/s.")
    ] = None,
    strategies: Annotated[
        bool, typer.Option("--strategies", help="With --out: bytes and time of every strategy instead.")
    ] = False,
    out: Annotated[
        str | None, option("FILE", "Draw the shards: .svg, .png, .pdf, .tex, .txt.", "--out", "-o")
    ] = None,
    json: Json = False,
) -> None:
    """A rule over many devices: who sends which keys to whom.

    The set of the rule, cut at the borders of shards, says which keys each device gets: their number and
    bytes, the pairs of each device, for contiguous, zigzag and balanced cuts, beside a ring, all-gather and
    Ulysses; what is quickest on a described cluster, and how long it takes. From closed forms, so at any
    length and 1,024 devices at once; nothing runs, and no GPU is needed.
    """
    if strategies and out is None:
        raise NamingError("--strategies belongs to --out; give both")
    values: dict[str, Any] = {**read_numbers(at)}
    if n is not None:
        if "n" in values:
            raise NamingError("n is given by --n and by --at; give it once")
        values["n"] = n
    chosen = read_rule(rule)
    from lattend.parallel.shard_plan import plan

    shards = plan(
        chosen,
        ranks=ranks,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        batch=batch,
        dtype=dtype,
        cut=_cut(cut),
        cluster=cluster,
        **values,
    )
    picture = None if out is None else shards.chart() if strategies else shards.draw()
    file = None if picture is None or out is None else str(picture.save(out))
    if json:
        say_json({**shards.json(), "file": file})
    else:
        say(shards.text(width()) if file is None or picture is None else f"{file}: {picture.title}")


def _cut(text: str | None) -> str | tuple[int, ...] | None:
    """`4x2` as (4, 2); a name as it is."""
    sides = [] if text is None else text.lower().replace("×", "x").split("x")
    if len(sides) < 2:
        return text
    if not all(side.strip().isdecimal() for side in sides):
        raise TextError(
            "--cut is a name, or how many ranks along each axis, as in 4x2", text or "", 0, len(text or "")
        )
    return tuple(int(side) for side in sides)
