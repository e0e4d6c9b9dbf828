"""lattend shard: a rule over many devices: who sends which keys to whom, balance and predicted time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lattend.cli.arguments import at_option, read_numbers, read_rule, rule_argument
from lattend.cli.command import Answer, Command, flag, option, setting
from lattend.cli.output import say, say_json, width
from lattend.errors import NamingError, TextError


@dataclass(frozen=True)
class ShardCommand(Command):
    """A rule over many devices: who sends which keys to whom.

    The set of the rule, cut at the borders of shards, says which keys each device gets: their number and
    bytes, the pairs of each device, for contiguous, zigzag and balanced cuts, beside a ring, all-gather and
    Ulysses; what is quickest on a described cluster, and how long it takes. From closed forms, so at any
    length and 1,024 devices at once; nothing runs, and no GPU is needed.

        lattend shard strided --at n=1048576,t=4095 --ranks 8 --heads 32 --kv-heads 8 --head-dim 128
        lattend shard strided --at n=64,t=5 --ranks 8 --out shards.svg
        lattend shard causal --n 1000000000 --ranks 1024 --heads 32 --kv-heads 8 --strategies -o chart.png
        lattend shard "neighbourhood(6)" --at rows=256,cols=256 --ranks 8 --cut 4x2
        lattend shard causal --n 65536 --ranks 16 --cluster machine=A100,node=4,infiniband=25GB/s
    """

    rule: str = rule_argument()
    at: list[str] | None = at_option()
    n: int | None = option("N", "Positions on a line, as --at n=N.")
    ranks: int = setting("R", "Devices that share the positions.", 8)
    heads: int = setting("H", "Heads of queries.", 1)
    kv_heads: int | None = option("H", "Heads of keys and values, where they are fewer.")
    head_dim: int = setting("D", "Numbers in a query of one head.", 64)
    batch: int = setting("B", "Elements of the batch.", 1)
    dtype: str = setting("DTYPE", "bfloat16, float16, float32, float64 or fp8.", "bfloat16")
    cut: str | None = option("CUT", "contiguous, zigzag, balanced, or blocks of an image: 4x2. The quickest.")
    cluster: str | None = option(
        "NUMBERS", "The machines: machine=H100,node=8,nvlink=450GB/s,infiniband=50GB/s."
    )
    strategies: bool = flag("With --out: bytes and time of every strategy instead.")
    out: str | None = option("FILE", "Draw the shards: .svg, .png, .pdf, .tex, .txt.", "--out", "-o")

    def answer(self) -> Answer:
        if self.strategies and self.out is None:
            raise NamingError("--strategies belongs to --out; give both")
        values: dict[str, Any] = {**read_numbers(self.at)}
        if self.n is not None:
            if "n" in values:
                raise NamingError("n is given by --n and by --at; give it once")
            values["n"] = self.n
        chosen = read_rule(self.rule)
        from lattend.parallel.shard_plan import plan

        shards = plan(
            chosen,
            **self.options("ranks heads kv_heads head_dim batch dtype cluster"),
            cut=_cut(self.cut),
            **values,
        )
        picture = None if self.out is None else shards.chart() if self.strategies else shards.draw()
        file = None if picture is None or self.out is None else str(picture.save(self.out))
        if self.json:
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
