"""What a plan of shards says: formulas, ranks, cuts and strategies, as a report and as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from lattend.counts.count import Count
from lattend.draw.grid.titles import clipped, values
from lattend.errors import LattendError, TooLarge
from lattend.parallel.intervals import StridedInterval
from lattend.parallel.keyset import Box
from lattend.report.numbers import format_bytes, seconds, short_bytes, significant
from lattend.report.report import Report
from lattend.report.table import Facts, Table
from lattend.wording import many

if TYPE_CHECKING:
    from lattend.parallel.shard_plan import ShardPlan
    from lattend.parallel.strategies import Share, Strategy

FEW = 16  # ranks that are listed one by one
EDGES = 4  # sources of a rank that are named
LONGEST = 8  # lines of a formula
CUTS_SAY = (
    "The fullest rank of each cut: its pairs, the keys it gets, their bytes forward, and gradients backward:"
)
STRATEGIES_SAY = "What a rank gets at most, and the predicted time forward and backward:"
RANKS_SAY = "What each rank has, and gets from whom:"


def plan_report(plan: ShardPlan) -> Report:
    """The plan for a reader."""
    facts = [
        ("rule", clipped(plan.rule.text)),
        ("at", values(plan.rule, [*plan.rule.sizes, *plan.rule.parameters])),
    ]
    facts += [("tensors", tensors_text(plan)), *_formulas(plan)]
    parts: list[Table | Facts | str] = [
        Facts(facts),
        "",
        CUTS_SAY,
        _cut_table(plan),
        "",
        STRATEGIES_SAY,
        _strategy_table(plan),
    ]
    large = [one.label for one in plan.strategies if not one.fits(plan.cluster)]
    said = (
        chosen_text(plan),
        _beside(plan),
        f"Too large for the memory of one device: {', '.join(large)}." if large else "",
        f"Not looked at: {'; '.join(plan.left_out)}." if plan.left_out else "",
        f"Predicted for {plan.cluster}; {plan.cluster.shares}.",
    )
    listed = (
        RANKS_SAY
        if plan.ranks <= FEW
        else f"{RANKS_SAY[:-1]}, of {plan.ranks:,} the first, a middle, the last and the fullest:"
    )
    parts += ["", *filter(None, said), "", listed, _rank_table(plan)]
    return Report(plan.title, parts, plan_json(plan))


def tensors_text(plan: ShardPlan) -> str:
    """`32 heads on 8 of keys and values, head_dim 128, bfloat16: a key and its value are 4,096 bytes`."""
    some = plan.tensors
    fewer = f" on {some.kv_heads} of keys and values" if some.kv_heads != some.heads else ""
    width = f"head_dim {some.head_dim}" + (
        f", value_dim {some.value_dim}" if some.value_dim != some.head_dim else ""
    )
    batch = f", batch {some.batch}" if some.batch > 1 else ""
    heads = f"{many(some.heads, 'head')}{fewer}"
    return f"{heads}, {width}{batch}, {plan.dtype}: a key and its value are {some.row:,} bytes"


def _formulas(plan: ShardPlan) -> list[tuple[str, str]]:
    """The closed forms, where they are found in time and can be read."""
    first = "queries" if len(plan.rule.axes) == 1 else "rows" if len(plan.rule.axes) == 2 else "slices"
    name = f"pairs of {first} a … b - 1"
    if len(plan.layout.cuts) > 1:
        name += f", {'columns' if first == 'rows' else 'rows'} c … d - 1"
    return [(name, _formula(lambda: plan.pairs)), ("keys they get", _formula(lambda: plan.halo))]


def _formula(count: Callable[[], Count]) -> str:
    try:
        text = str(count())
    except LattendError as reason:
        return f"no closed form: {reason.reason if hasattr(reason, 'reason') else reason}"
    lines = text.splitlines()
    if len(lines) > LONGEST:
        return f"a closed form in {len(lines)} lines, not printed here"
    return text


def _cut_table(plan: ShardPlan) -> Table:
    head = ("cut", "most pairs", "of the mean", "most keys", "forward", "backward")
    rows = [
        (
            name,
            f"{max(share.pairs):,}",
            significant(share.balance, 4),
            f"{int(share.halo.max(initial=0)):,}",
            short_bytes(int(share.halo.max(initial=0)) * plan.tensors.row),
            short_bytes(max(share.sent.values(), default=0) * plan.tensors.row),
        )
        for name, share in plan.shares.items()
    ]
    return Table(head, rows)


def _strategy_table(plan: ShardPlan) -> Table:
    head = ("strategy", "cut", "forward", "backward", "predicted")
    rows = [
        (
            f"{one.name}{' *' if one is plan.chosen else ''}",
            one.cut,
            short_bytes(one.forward),
            short_bytes(one.backward),
            seconds(one.time),
        )
        for one in sorted(plan.strategies, key=lambda one: one.time)
    ]
    return Table(head, rows)


def chosen_text(plan: ShardPlan) -> str:
    """Which strategy is chosen, and why."""
    strategy = plan.chosen
    rest = [one for one in plan.strategies if one is not strategy and one.ours and one.fits(plan.cluster)]
    said = f"* {strategy.label} is chosen: predicted {seconds(strategy.time)} forward and backward"
    if not rest:
        return f"{said}."
    near = [other for other in rest if other.time <= 1.01 * strategy.time]
    if near:
        return f"{said}, and the fewest bytes of the {len(near) + 1} within 1% of that."
    second = min(rest, key=lambda other: other.time)
    return f"{said}; the next is {second.label}, {seconds(second.time)}."


def _beside(plan: ShardPlan) -> str:
    """How much less it moves than what others do."""
    gets = plan.chosen.forward
    others = [one for one in plan.strategies if not one.ours or one.name == "Ulysses"]
    others = [one for one in others if one is not plan.chosen]
    if not gets or not others:
        return ""
    said = [
        f"{one.name} {short_bytes(one.forward)} ({significant(one.forward / gets, 3)} times)"
        for one in others
    ]
    return f"Forward a rank gets at most {format_bytes(gets)}; {', '.join(said)}."


def _shown(share: Share) -> list[int]:
    """The ranks that are listed."""
    ranks = share.layout.ranks
    if ranks <= FEW:
        return [*range(ranks)]
    return sorted({0, ranks // 2, ranks - 1, int(share.halo.argmax())})


def _rank_table(plan: ShardPlan) -> Table:
    share = plan.share
    shown = _shown(share)
    head = ("rank", "has", "pairs", "keys", "from", "forward", "backward")
    rows = [
        (
            str(rank),
            has_text(share, rank),
            f"{share.pairs[rank]:,}",
            f"{int(share.halo[rank]):,}",
            from_text(plan, rank),
            short_bytes(int(share.halo[rank]) * plan.tensors.row),
            short_bytes(share.sent[rank] * plan.tensors.row),
        )
        for rank in shown
    ]
    return Table(head, rows)


def has_text(share: Share, rank: int) -> str:
    """`0 … 131,071`, or `rows 0 … 31, columns 0 … 15`."""
    layout = share.layout
    names = (
        ("",)
        if len(layout.sizes) == 1
        else ("rows ", "columns ")
        if len(layout.sizes) == 2
        else ("slices ", "rows ")
    )
    boxes = [
        ", ".join(
            f"{name}{a:,} … {b - 1:,}" for name, (a, b) in zip(names[: len(layout.cuts)], box, strict=False)
        )
        for box in layout.boxes(rank)
    ]
    return " and ".join(boxes) or "nothing"


def from_text(plan: ShardPlan, rank: int) -> str:
    """`0: 126,977 … 131,071`: which keys of whom a rank gets, of the first few ranks one by one."""
    counts, lengths = plan.keys_from(rank), plan.layout.lengths
    whole = [source for source, keys in counts.items() if keys == lengths[source]]
    rest = [source for source in counts if source not in set(whole)]
    said = [f"all of {_ranks_text(whole)}"] if whole else []
    boxes: dict[int, Sequence[Box]] = {}
    with suppress(TooLarge):  # too many pieces to list
        boxes = {source: plan.share.reached.boxes(rank, source) for source in rest[:EDGES]}
    for source in rest[:EDGES]:
        some = boxes.get(source, ())
        keys = " and ".join(map(_grouped, some)) if 0 < len(some) <= 2 else f"{counts[source]:,} keys"
        said.append(f"{source}: {keys}")
    more = len(rest) - EDGES
    return "\n".join([*said, *([f"and of {many(more, 'more rank')}"] if more > 0 else [])])


def _ranks_text(ranks: list[int]) -> str:
    """`0`, `0 … 6`, or `7 ranks` where they do not follow each other."""
    if len(ranks) == 1:
        return str(ranks[0])
    return f"{ranks[0]} … {ranks[-1]}" if ranks[-1] - ranks[0] == len(ranks) - 1 else many(len(ranks), "rank")


def _grouped(box: Box) -> str:
    return " × ".join(map(_interval_text, box.along))


def _interval_text(keys: StridedInterval) -> str:
    """As `str`, with digits grouped, and without the last position of many pieces."""
    if keys.count > 1:
        each = f"{keys.size:,} of each {keys.period:,}" if keys.size > 1 else f"every {keys.period:,}th"
        return f"{each} from {keys.start:,}"
    return f"{keys.start:,} … {keys.end - 1:,}" if keys.size > 1 else f"{keys.start:,}"


def plan_json(plan: ShardPlan) -> dict[str, Any]:
    """The plan as plain data; ranks beyond those listed by their pairs and keys alone."""
    share = plan.share
    shown = _shown(share)
    return {
        "rule": plan.rule.text,
        "at": dict(plan.rule.values),
        "ranks": plan.ranks,
        "dtype": plan.dtype,
        "bytes_per_key": plan.tensors.row,
        "cuts": [
            {
                "cut": name,
                "pairs": [int(x) for x in one.pairs],
                "keys": [int(x) for x in one.halo],
                "balance": one.balance,
            }
            for name, one in plan.shares.items()
        ],
        "strategies": [_strategy_json(one) for one in plan.strategies],
        "chosen": _strategy_json(plan.chosen),
        "cluster": str(plan.cluster),
        "left_out": list(plan.left_out),
        "edges": [
            {"from": source, "to": rank, "keys": keys}
            for rank in shown
            for source, keys in plan.keys_from(rank).items()
        ],
    }


def _strategy_json(strategy: Strategy) -> dict[str, Any]:
    return {
        "strategy": strategy.name,
        "cut": strategy.cut,
        "bytes_forward": strategy.forward,
        "bytes_backward": strategy.backward,
        "bytes_held": strategy.held,
        "from_ranks": strategy.messages,
        "balance": strategy.balance,
        "seconds_forward": strategy.times[0],
        "seconds_backward": strategy.times[1],
    }
