"""lattend cost: the exact price of a layer or of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lattend.cli.arguments import Assume, Json, argument, option, read_renames, read_sizes, refuse
from lattend.cli.failures import NO, NO_ANSWER, YES
from lattend.cli.models import is_model, price_model
from lattend.cli.output import say, say_json, show, show_report, width
from lattend.errors import LattendError
from lattend.wording import cut

if TYPE_CHECKING:
    from lattend.cost.cost import Cost
    from lattend.cost.per_point import PerPoint
    from lattend.counts.verdict import Verdict

EXAMPLES = (
    "lattend cost",
    "lattend cost rnn2d",
    'lattend cost rnn2d --claim "multiplies: n^2 h c + 2n(n-1)h^2"',
    "lattend cost attention --rule causal --at n=4096,heads=32,D_i=4096,D_hid=128",
    'lattend cost "rnn(steps=t, inputs=n, hidden=n, layers=l)" --order multiplies',
    'lattend cost "l * attention(causal, n=t, heads=1) + linear(n=t)"',
    'lattend cost conv --at kernel=k,c_in=d,c_out=d,rows=n,cols=1 --claim "multiplies: O(k^2 d n)"',
    'lattend cost attention --rule windowed --at heads=1 --claim "exponentials: n(w+1)/2" --assume "w | n"',
    'lattend cost rnn2d --per cell --claim "inner multiplies: hc + 2h^2"',
    "lattend cost decoder --per step",
    "lattend cost vit --out vit.svg",
    "lattend cost rnn2d --statements",
    'lattend cost "attention(D_o=D_o, D_out=D_out)" --parameters',
    'lattend cost "rnn2d(cell=lstm)" --at n=4,h=3,c=2 --check',
    "lattend cost config.json --length 8192",
    "lattend cost config.json --length 8192 --batch 8 --training --formulas",
    "lattend cost config.json --length 32768 --machine H100 --batch 8 --weights fp8",
    'lattend cost config.json --length 32768 --rule "strided(4095)" --layers 0-31:2 --draw serving.svg',
)
# Options that have an answer of their own, and those that go with it
ALONE = {
    "--check": (),
    "--parameters": (),
    "--statements": ("--backward",),
    "--out": ("--backward",),
    "--per": ("--claim", "--assume", "--order", "--latex"),
}


def cost(
    layer: Annotated[
        str | None,
        argument("LAYER", "rnn2d, rnn(steps=t), l * attention, or a config.json; without it, all layers."),
    ] = None,
    rule: Annotated[str | None, option("RULE", "The attention mask, as a rule.", "--rule")] = None,
    at: Annotated[
        list[str] | None, option("n=12,kernel=k", "Numbers for sizes, or letters for arguments.", "--at")
    ] = None,
    backward: Annotated[bool, typer.Option("--backward", help="The backward pass.")] = False,
    per: Annotated[
        str | None, option("score|cell|step", "The price of one score, one cell, one decoding step.", "--per")
    ] = None,
    parameters: Annotated[
        bool, typer.Option("--parameters", help="The parameters by matrix, of one head and of all.")
    ] = False,
    statements: Annotated[
        bool, typer.Option("--statements", help="The sets that are counted, one by one.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Run plain code at these sizes, and compare what it counts.")
    ] = False,
    claim: Annotated[list[str] | None, option("QUANTITY:FORMULA", "Decide a formula or a big-O.")] = None,
    assume: Assume = None,
    rename: Annotated[list[str] | None, option("N_h=heads", "Letters of a claim, and ours for them.")] = None,
    order: Annotated[str | None, option("QUANTITY", "The big-O of a quantity.")] = None,
    latex: Annotated[str | None, option("QUANTITY", "A quantity as LaTeX.")] = None,
    length: Annotated[int | None, option("N", "Tokens of a sequence, for a config.json.", min=1)] = None,
    encoder_length: Annotated[
        int | None, option("M", "Positions of the encoder, for a config.json that has one.", min=1)
    ] = None,
    batch: Annotated[int | None, option("B", "So many sequences at once, for a config.json.", min=1)] = None,
    machine: Annotated[
        str | None,
        option("H100", "Serve a config.json on it: a name, or flops=990T,bandwidth=3.35TB/s,memory=80GB."),
    ] = None,
    machines: Annotated[int | None, option("8", "So many of the machine, taken as one.", min=1)] = None,
    weights: Annotated[
        str | None, option("FORMAT", "Of a config.json: fp32, bf16, fp8, int8, int4, mxfp4.")
    ] = None,
    cache: Annotated[str | None, option("FORMAT", "Of the KV cache: fp32, bf16, fp8, int8.")] = None,
    layers: Annotated[str | None, option("0-5,10", "The layers of a config.json that --rule is for.")] = None,
    training: Annotated[
        bool, typer.Option("--training", help="Forward and backward, for a config.json.")
    ] = False,
    formulas: Annotated[
        bool, typer.Option("--formulas", help="Of a config.json, in n tokens of b sequences.")
    ] = False,
    out: Annotated[
        str | None,
        option("FILE", "Draw bars, or a model's charts: .svg, .png, .pdf.", "--out", "-o", "--draw"),
    ] = None,
    json: Json = False,
) -> int:
    """What a layer or a model costs.

    Parameters, multiplies, adds, memory, sequential depth: formulas in the layer's sizes, numbers
    where --at gives them, always needed, executed and dense. A claim is "multiplies: n^2 h c" or
    "multiplies: O(n^2)", of a quantity as the table calls it ("KV cache", "sequential depth", operations) or
    of a matrix (W_out, "one head"); the exit code is 1 when one fails, 3 when one stays undecided. With
    --check it is 1 when a number differs from what plain code counts as it runs.

    A config.json of Hugging Face, or the folder that holds it, is priced as a whole model, and for those who
    serve it: FLOPs a token, bytes of weights and KV cache, least times on a machine, what fits.
    """
    options = {"--rule": rule, "--at": at, "--backward": backward, "--claim": claim, "--order": order}
    options |= {"--assume": assume}
    options |= {"--latex": latex, "--out": out, "--statements": statements, "--check": check}
    options |= {"--parameters": parameters, "--per": per}
    if layer is None:
        refuse(
            options, options, "needs a layer, as in lattend cost rnn2d; lattend cost alone lists the layers"
        )
        from lattend.cost.reader import catalogue

        show_report(catalogue(), json)
        return YES
    of_model = {"--length": length, "--batch": batch, "--training": training or None}
    of_model |= {"--formulas": formulas or None, "--machine": machine, "--machines": machines}
    of_model |= {"--weights": weights, "--cache": cache, "--layers": layers}
    of_model |= {"--encoder-length": encoder_length}
    if is_model(layer):
        of_layers = [name for name in options if name not in ("--rule", "--out")]
        refuse(
            options, of_layers, "is for a layer, not for a model; a model takes --length, --batch, --machine"
        )
        return price_model(layer, {**of_model, "--rule": rule, "--out": out}, json)
    refuse(of_model, of_model, "is for a config.json; a layer takes its sizes from --at n=…")
    for alone, takes in ALONE.items():
        if options[alone]:
            others = [name for name in options if name not in (alone, "--rule", "--at", *takes)]
            refuse(options, others, f"does not go with {alone}; ask for one of the two")
    if assume and not claim:
        raise LattendError("--assume is what a claim may take for granted; give --claim too")
    sizes = read_sizes(at)
    if check:
        return _check(layer, rule, sizes, json)
    whole_cost = _layer(layer, rule, sizes)
    if parameters:
        show_report(whole_cost.parameters_by_matrix(), json)
    elif statements:
        from lattend.cost.summary import statements as sets

        say(sets(whole_cost, width()))
    elif out is not None:
        chosen = whole_cost.backward if backward else whole_cost
        show(replace(chosen.draw(), data=chosen.json()), out, json)
    else:
        part = whole_cost.per(per) if per is not None else whole_cost.backward if backward else whole_cost
        verdicts = _judged(part, claim or [], read_renames(rename), " and ".join(assume or ()))
        return _answer(part, verdicts, order, latex, json)
    return YES


def _answer(
    cost: Cost | PerPoint,
    verdicts: list[tuple[str, Verdict]],
    order: str | None,
    latex: str | None,
    json: bool,
) -> int:
    """Print what was asked about a cost: claims, orders, formulas, or all of it."""
    if not verdicts and order is None and latex is None:
        show_report(cost, json)
        return YES
    data = {"order": str(cost.order(order))} if order is not None else {}
    data |= {"latex": cost.latex(latex)} if latex is not None else {}
    if json:
        judged = [{"quantity": quantity, **verdict.json()} for quantity, verdict in verdicts]
        say_json({"claims": judged, **data} if judged and data else judged or data)
    else:
        lines = [f"{quantity}: {verdict}" for quantity, verdict in verdicts]
        say("\n".join([*lines, *data.values()]))
    if all(verdict.holds for _, verdict in verdicts):
        return YES
    return NO_ANSWER if any(verdict.status == "undecided" for _, verdict in verdicts) else NO


def _layer(text: str, rule: str | None, values: Mapping[str, int | str]) -> Cost:
    """The layer at these numbers. Its own arguments come first, so that tiles can be counted."""
    from lattend.cost.reader import from_text

    arguments: dict[str, Any] = dict(values)
    if rule is not None:
        arguments["rule"] = rule
    return from_text(text, arguments)


def _check(text: str, rule: str | None, values: dict[str, int | str], json: bool) -> int:
    """Check a layer by running it. Numbers of open sizes are put into its formulas."""
    letters = {name: value for name, value in values.items() if isinstance(value, str)}
    symbols = _layer(text, rule, letters).names
    numbers = {name: value for name, value in values.items() if name in symbols and isinstance(value, int)}
    rest = {name: value for name, value in values.items() if name not in numbers}
    result = _layer(text, rule, rest).check(**numbers)
    show_report(result, json)
    return YES if result else NO


def _judged(
    cost: Cost | PerPoint, claims: list[str], rename: dict[str, str], assuming: str
) -> list[tuple[str, Verdict]]:
    """The quantity of each claim, and the verdict."""
    verdicts: list[tuple[str, Verdict]] = []
    for text in claims:
        quantity, colon, formula = (part.strip() for part in text.partition(":"))
        if not colon or not formula:
            raise LattendError(f'--claim: name the quantity too, as in "multiplies: {cut(text)}"')
        verdict = cost.claim(quantity, formula, assuming=assuming or None, rename=rename)
        verdicts.append((quantity, verdict))
    return verdicts
