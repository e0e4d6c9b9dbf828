"""lattend cost: the exact price of a layer or of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lattend.cli.arguments import assume_option, read_renames, read_sizes
from lattend.cli.command import Answer, Command, argument, flag, option
from lattend.cli.failures import NO, NO_ANSWER, YES
from lattend.cli.models import is_model, price_model
from lattend.cli.output import say, say_json, width
from lattend.errors import LattendError
from lattend.wording import cut

if TYPE_CHECKING:
    from lattend.cost.check import CostCheck
    from lattend.cost.cost import Cost
    from lattend.cost.per_point import PerPoint
    from lattend.counts.verdict import Verdict

OF_LAYER = (
    *("rule", "at", "backward", "claim", "order", "assume", "latex", "out", "statements", "check"),
    *("parameters", "per"),
)
OF_MODEL = (
    *("length", "batch", "training", "formulas", "machine", "machines", "weights", "cache", "layers"),
    "encoder_length",
)
# Options that have an answer of their own, and those that go with it
ALONE = {
    "check": (),
    "parameters": (),
    "statements": ("backward",),
    "out": ("backward",),
    "per": ("claim", "assume", "order", "latex"),
}


@dataclass(frozen=True)
class CostCommand(Command):
    """What a layer or a model costs.

    Parameters, multiplies, adds, memory, sequential depth: formulas in the layer's sizes, numbers
    where --at gives them, always needed, executed and dense. A claim is "multiplies: n^2 h c" or
    "multiplies: O(n^2)", of a quantity as the table calls it ("KV cache", "sequential depth", operations) or
    of a matrix (W_out, "one head"); the exit code is 1 when one fails, 3 when one stays undecided. With
    --check it is 1 when a number differs from what plain code counts as it runs.

    A config.json of Hugging Face, or the folder that holds it, is priced as a whole model, and for those who
    serve it: FLOPs a token, bytes of weights and KV cache, least times on a machine, what fits.

        lattend cost
        lattend cost rnn2d
        lattend cost rnn2d --claim "multiplies: n^2 h c + 2n(n-1)h^2"
        lattend cost attention --rule causal --at n=4096,heads=32,D_i=4096,D_hid=128
        lattend cost "rnn(steps=t, inputs=n, hidden=n, layers=l)" --order multiplies
        lattend cost "l * attention(causal, n=t, heads=1) + linear(n=t)"
        lattend cost conv --at kernel=k,c_in=d,c_out=d,rows=n,cols=1 --claim "multiplies: O(k^2 d n)"
        lattend cost attention --rule windowed --at heads=1 --claim "exponentials: n(w+1)/2" --assume "w | n"
        lattend cost rnn2d --per cell --claim "inner multiplies: hc + 2h^2"
        lattend cost decoder --per step
        lattend cost vit --out vit.svg
        lattend cost rnn2d --statements
        lattend cost "attention(D_o=D_o, D_out=D_out)" --parameters
        lattend cost "rnn2d(cell=lstm)" --at n=4,h=3,c=2 --check
        lattend cost config.json --length 8192
        lattend cost config.json --length 8192 --batch 8 --training --formulas
        lattend cost config.json --length 32768 --machine H100 --batch 8 --weights fp8
        lattend cost config.json --length 32768 --rule "strided(4095)" --layers 0-31:2 --draw serving.svg
    """

    layer: str | None = argument(
        "LAYER", "rnn2d, rnn(steps=t), l * attention, or a config.json; without it, all layers.", None
    )
    rule: str | None = option("RULE", "The attention mask, as a rule.")
    at: list[str] | None = option("n=12,kernel=k", "Numbers for sizes, or letters for arguments.")
    backward: bool = flag("The backward pass.")
    per: str | None = option("score|cell|step", "The price of one score, one cell, one decoding step.")
    parameters: bool = flag("The parameters by matrix, of one head and of all.")
    statements: bool = flag("The sets that are counted, one by one.")
    check: bool = flag("Run plain code at these sizes, and compare what it counts.")
    claim: list[str] | None = option("QUANTITY:FORMULA", "Decide a formula or a big-O.")
    assume: list[str] | None = assume_option()
    rename: list[str] | None = option("N_h=heads", "Letters of a claim, and ours for them.")
    order: str | None = option("QUANTITY", "The big-O of a quantity.")
    latex: str | None = option("QUANTITY", "A quantity as LaTeX.")
    length: int | None = option("N", "Tokens of a sequence, for a config.json.", least=1)
    encoder_length: int | None = option(
        "M", "Positions of the encoder, for a config.json that has one.", least=1
    )
    batch: int | None = option("B", "So many sequences at once, for a config.json.", least=1)
    machine: str | None = option(
        "H100", "Serve a config.json on it: a name, or flops=990T,bandwidth=3.35TB/s,memory=80GB."
    )
    machines: int | None = option("8", "So many of the machine, taken as one.", least=1)
    weights: str | None = option("FORMAT", "Of a config.json: fp32, bf16, fp8, int8, int4, mxfp4.")
    cache: str | None = option("FORMAT", "Of the KV cache: fp32, bf16, fp8, int8.")
    layers: str | None = option("0-5,10", "The layers of a config.json that --rule is for.")
    training: bool = flag("Forward and backward, for a config.json.")
    formulas: bool = flag("Of a config.json, in n tokens of b sequences.")
    out: str | None = option(
        "FILE", "Draw bars, or a model's charts: .svg, .png, .pdf.", "--out", "-o", "--draw"
    )

    def answer(self) -> Answer:
        if self.layer is None:
            why = "needs a layer, as in lattend cost rnn2d; lattend cost alone lists the layers"
            self.refuse(OF_LAYER, why)
            from lattend.cost.reader import catalogue

            return catalogue()
        if is_model(self.layer):
            why = "is for a layer, not for a model; a model takes --length, --batch, --machine"
            self.refuse([name for name in OF_LAYER if name not in ("rule", "out")], why)
            price_model(self.layer, self)
            return YES
        self.refuse(OF_MODEL, "is for a config.json; a layer takes its sizes from --at n=…")
        for alone, takes in ALONE.items():
            if getattr(self, alone):
                others = [name for name in OF_LAYER if name not in (alone, "rule", "at", *takes)]
                self.refuse(others, f"does not go with --{alone}; ask for one of the two")
        if self.assume and not self.claim:
            raise LattendError("--assume is what a claim may take for granted; give --claim too")
        sizes = read_sizes(self.at)
        if self.check:
            checked = self._checked(sizes)
            return checked
        cost = self._cost(sizes)
        part = cost.per(self.per) if self.per is not None else cost.backward if self.backward else cost
        if self.parameters:
            return cost.parameters_by_matrix()
        elif self.statements:
            from lattend.cost.summary import statements

            say(statements(cost, width()))
        elif self.out is not None:
            chosen = cost.backward if self.backward else cost
            return replace(chosen.draw(), data=chosen.json())
        elif self.claim or self.order is not None or self.latex is not None:
            return self._parts(part)
        else:
            return part
        return YES

    def _cost(self, values: Mapping[str, int | str]) -> Cost:
        """The layer at these numbers. Its own arguments come first, so that tiles can be counted."""
        from lattend.cost.reader import from_text

        mask = {} if self.rule is None else {"rule": self.rule}
        return from_text(self.layer or "", {**values, **mask})

    def _checked(self, values: Mapping[str, int | str]) -> CostCheck:
        """The layer beside a run of it. Numbers of open sizes are put into its formulas."""
        symbols = self._cost({name: value for name, value in values.items() if isinstance(value, str)}).names
        numbers = {
            name: value for name, value in values.items() if name in symbols and isinstance(value, int)
        }
        rest = {name: value for name, value in values.items() if name not in numbers}
        return self._cost(rest).check(**numbers)

    def _parts(self, cost: Cost | PerPoint) -> int:
        """Print the claims, the order and the formula that are asked for."""
        verdicts = self._judged(cost)
        data = {"order": str(cost.order(self.order))} if self.order is not None else {}
        data |= {"latex": cost.latex(self.latex)} if self.latex is not None else {}
        if self.json:
            judged = [{"quantity": quantity, **verdict.json()} for quantity, verdict in verdicts]
            say_json({"claims": judged, **data} if judged and data else judged or data)
        else:
            lines = [f"{quantity}: {verdict}" for quantity, verdict in verdicts]
            say("\n".join([*lines, *data.values()]))
        if all(verdict.holds for _, verdict in verdicts):
            return YES
        return NO_ANSWER if any(verdict.status == "undecided" for _, verdict in verdicts) else NO

    def _judged(self, cost: Cost | PerPoint) -> list[tuple[str, Verdict]]:
        """The quantity of each claim, and the verdict."""
        assuming, rename = " and ".join(self.assume or ()) or None, read_renames(self.rename)
        verdicts: list[tuple[str, Verdict]] = []
        for text in self.claim or ():
            quantity, colon, formula = (part.strip() for part in text.partition(":"))
            if not colon or not formula:
                raise LattendError(f'--claim: name the quantity too, as in "multiplies: {cut(text)}"')
            verdicts.append((quantity, cost.claim(quantity, formula, assuming=assuming, rename=rename)))
        return verdicts
