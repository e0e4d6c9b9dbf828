"""lattend explain: what attention would do under a rule: its tiles, its kernel, and what is wasted."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from lattend.cli.arguments import at_option, read_numbers, read_rule, rule_argument
from lattend.cli.command import Answer, Command, flag, option, setting
from lattend.cli.failures import NO, YES
from lattend.cli.output import save, say, say_json, show, width
from lattend.errors import NamingError, TextError


@dataclass(frozen=True)
class ExplainCommand(Command):
    """What attention would do under a rule.

    The pairs that are needed, executed and dense; the parts of the plan and their tiles; which kernel
    runs it and why not the others; how long it should take. Nothing is computed, and no GPU is needed.
    With --tiles, a map of a rule on a line: boxes of pairs, shaded by how many run.
    The exit code is 1 when no kernel can run it.

        lattend explain strided --at n=65536,t=255 --device cuda --dtype bfloat16
        lattend explain "sparse_fixed(l=128, c=8)" --n 16384 --out tiles.svg
        lattend explain "neighbourhood(6)" --at rows=256,cols=256 --kernel cpu
        lattend explain strided --at n=65536,t=255 --tiles --queries 0:4096 --keys 0:4096
        lattend explain causal --n 4096 --padding 4096,1000,37 --softcap 50 --device cuda
        lattend explain causal --sequences 4096,1000,37
    """

    rule: str = rule_argument()
    at: list[str] | None = at_option()
    n: int | None = option("N", "Positions on a line, as --at n=N.")
    head_dim: int = setting("D", "Numbers in a query of one head.", 64)
    heads: int | None = option("H", "Heads; 8 unless the rule says.")
    kv_heads: int | None = option("H", "Heads of keys and values, where they are fewer.")
    batch: int | None = option("B", "Elements of the batch; 1, or as many as --padding has.")
    dtype: str = setting("DTYPE", "bfloat16, float16, float32 or float64.", "float32")
    device: str = setting("cpu|cuda", "Where attention runs; it need not be here.", "cpu")
    kernel: str | None = option("NAME", "sdpa, triton, native, cpu, dense or reference.")
    padding: str | None = option("LENGTHS", "How many keys of each batch element are real: 4096,1000.")
    sequences: str | None = option("LENGTHS", "Lengths of sequences laid end to end, as cu_seqlens has them.")
    softcap: float | None = option("C", "Scores s become C·tanh(s/C).")
    sinks: bool = flag("A logit a head takes part in each softmax.")
    dropout: float = setting("P", "The share of weights that are dropped.", 0.0)
    tiles: bool = flag("Where pairs are computed, and how many of them are attended.")
    queries: str | None = option("FIRST:END", "With --tiles: these alone, as in 0:1024.")
    keys: str | None = option("FIRST:END", "With --tiles: these alone.")
    out: str | None = option("FILE", "Draw the tiles: .svg, .png, .pdf, .tex, .txt.", "--out", "-o")

    def answer(self) -> Answer:
        chosen, spans = read_rule(self.rule), (_span("--queries", self.queries), _span("--keys", self.keys))
        if any(spans) and not self.tiles:
            raise NamingError(f"{'--queries' if spans[0] else '--keys'} belongs to --tiles; give both")
        values: dict[str, Any] = {**read_numbers(self.at)}
        for name, value in (("n", self.n), ("heads", self.heads)):
            if value is not None:
                if name in values:
                    raise NamingError(f"{name} is given by --{name} and by --at; give it once")
                values[name] = value
        chosen = chosen.at(**{name: values.pop(name) for name in chosen.parameters if name in values})
        from lattend.attend.explain import explain as explaining

        explanation = explaining.explain(
            chosen,
            **self.options("kernel dtype device head_dim kv_heads batch softcap sinks dropout"),
            padding=_lengths("--padding", self.padding),
            cu_seqlens=None
            if self.sequences is None
            else [0, *accumulate(_lengths("--sequences", self.sequences) or [])],
            **values,
        )
        if self.tiles:
            show(explanation.tile_map(*spans).draw(explanation.title), self.out, self.json)
            return NO if explanation.refused else YES
        file = save(explanation.picture, self.out)
        if self.json:
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
