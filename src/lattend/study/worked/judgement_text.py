"""What a judgement says: each slip in one line with what follows from it, and the same as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from lattend.draw.picture import terminal_columns
from lattend.report.table import wrap_text
from lattend.study.worked.answer import NEAR, Place
from lattend.study.worked.build import ORDER
from lattend.study.worked.documents import NARROWEST
from lattend.study.worked.entry import CONTEXT, MOST_PLACES, rounded
from lattend.wording import many

if TYPE_CHECKING:
    from lattend.study.worked.judge import Judgement, NumberVerdict

NOUNS = {
    "scores": "score",
    "masked": "masked score",
    "exponentials": "exponential",
    "sums": "sum",
    "weights": "weight",
    "mixed": "mixed value",
    "outputs": "output",
}
MOST_LINES = 24  # about slips, that are printed
EXACT_PLACES = 8  # shown of the true number beside an exact form
FEWEST_PLACES = 4  # shown of a true number that is not whole


def judgement_lines(judgement: Judgement, width: int | None = None) -> list[str]:
    """The slips, then how many numbers there are of each kind."""
    columns = max(NARROWEST, width or terminal_columns())
    lines = [part for stray in stray_sentences(judgement) for part in wrap_text(stray, columns)]
    groups = _groups(judgement)
    for group in groups[:MOST_LINES]:
        first, *rest = wrap_text(_sentence(judgement, group), columns)
        lines += [first, *(f"  {part}" for piece in rest for part in wrap_text(piece, columns - 2))]
    if len(groups) > MOST_LINES:
        lines += wrap_text(f"and {len(groups) - MOST_LINES:,} more such lines, which JSON has", columns)
    for sentence in (summary(judgement), *notes(judgement)):
        lines += wrap_text(sentence, columns)
    return lines


def stray_sentences(judgement: Judgement) -> list[str]:
    """`row 2, q: 2 numbers too many, 1 and 1, which are left out`."""
    sentences: list[str] = []
    for name, head, row, texts in judgement.strays:
        where = f"head {head + 1}, " if judgement.heads > 1 and name != "outputs" else ""
        left_out = "which is left out" if len(texts) == 1 else "which are left out"
        sentences.append(
            f"{where}row {row + 1}, {_noun(name, 2)}: {many(len(texts), 'number')} too many at its end, "
            f"{_joined(texts)}, {left_out}"
        )
    return sentences


def _groups(judgement: Judgement) -> list[list[NumberVerdict]]:
    """Slips that are alike: one number for another, in the same columns of one row or several."""
    by_row: dict[tuple[Any, ...], list[NumberVerdict]] = {}
    for slip in judgement.slips:
        name, head, row, _ = slip.place
        words = (slip.written.text, format_true(slip), _format_value(slip, slip.own))
        by_row.setdefault((name, head, row, *words), []).append(slip)
    alike: dict[tuple[Any, ...], list[NumberVerdict]] = {}
    for (name, head, _, *words), slips in by_row.items():
        columns = tuple(slip.place[3] for slip in slips)
        alike.setdefault((name, head, columns, *words), []).extend(slips)
    return list(alike.values())


def _sentence(judgement: Judgement, slips: Sequence[NumberVerdict]) -> str:
    """`row 1, weight 1: you have .1967, exact .1966; output 2 of row 1 follows from it`."""
    first = slips[0]
    name, head, _, _ = first.place
    rows = sorted({slip.place[2] for slip in slips})
    columns = sorted({slip.place[3] for slip in slips})
    where = f"head {head + 1}, " if judgement.heads > 1 and name != "outputs" else ""
    which = "" if name == "sums" else f" {_listed(columns)}"
    text = f"{where}row{_s(len(rows))} {_listed(rows)}, {_noun(name, len(columns))}{which}: "
    text += f"you have {first.written.text}, exact {format_true(first)}"
    if _format_like(first, first.own) != _format_like(first, first.exact):
        text += f", and {_format_value(first, first.own)} from your numbers before it"
    places = {slip.place for slip in slips}
    follow = [verdict.place for verdict in judgement.of("follows") if verdict.roots & places]
    if follow:
        parts, many = _followers(follow, judgement.heads)
        text += f"; {parts} follow{'' if many else 's'} from {'them' if len(slips) > 1 else 'it'}"
    return text


def _followers(places: Iterable[Place], heads: int) -> tuple[str, bool]:
    """`weights of row 2 and output 2 of row 2`, and whether that is more than one thing."""
    by_step: dict[str, list[Place]] = {}
    for place in sorted(places, key=lambda place: ORDER.index(place[0])):
        by_step.setdefault(place[0], []).append(place)
    parts: list[str] = []
    for name, numbers in by_step.items():
        of_heads, rows, columns = (
            sorted(set(part)) for part in zip(*(place[1:] for place in numbers), strict=True)
        )
        if name == "sums":
            part = "the sum" if len(numbers) == 1 else "sums"
        elif len(columns) == 1:
            part = f"{_noun(name, 1)} {columns[0] + 1}"
        else:
            part = _noun(name, len(numbers))
        parts.append(f"{part} of row{_s(len(rows))} {_listed(rows)}")
        if heads > 1 and name != "outputs":
            parts[-1] += f" of head{_s(len(of_heads))} {_listed(of_heads)}"
    return _joined(parts), sum(map(len, by_step.values())) > 1


def format_true(verdict: NumberVerdict) -> str:
    """The exact number, with the digits that the answer gives or four, or its form beside another form."""
    if verdict.written.is_form and verdict.form is not None:
        return verdict.form
    return _format_value(verdict, verdict.exact)


def _format_value(verdict: NumberVerdict, value: Decimal) -> str:
    return _format_like(verdict, value, 0 if is_whole(value) else FEWEST_PLACES)


def _format_like(verdict: NumberVerdict, value: Decimal, fewest: int = 0) -> str:
    """A number with as many digits as the answer's, and at least so many."""
    places = max(fewest, verdict.written.places)
    text = rounded(value, places if places <= MOST_PLACES - 2 else EXACT_PLACES)
    bare = verdict.written.text.lstrip("+-").startswith((".", ","))
    return text.replace("0.", ".", 1) if bare and text.lstrip("-").startswith("0.") else text


def is_whole(value: Decimal) -> bool:
    """Whether a number has no decimals, as far as 60 digits tell."""
    return not value.is_finite() or abs(CONTEXT.subtract(value, value.to_integral_value())) < NEAR


def notes(judgement: Judgement) -> list[str]:
    """Which decimal commas were read, and which whole numbers were taken for numbers that are not whole."""
    return [*_commas(judgement), *_whole_numbers(judgement)]


def _commas(judgement: Judgement) -> list[str]:
    commas = [verdict.written for verdict in judgement.verdicts if verdict.written.has_comma]
    if not commas:
        return []
    first = commas[0].text
    subject = "1 decimal comma is" if len(commas) == 1 else f"{len(commas)} decimal commas are"
    return [f"{subject} read as a point: {first} as {first.replace(',', '.')}"]


def _whole_numbers(judgement: Judgement) -> list[str]:
    taken = [
        verdict
        for verdict in judgement.of("right")
        if verdict.written.places == 0 and not is_whole(verdict.exact)
    ]
    if not taken:
        return []
    first = taken[0]
    subject = "1 whole number passes" if len(taken) == 1 else f"{len(taken)} whole numbers pass"
    return [
        f"{subject} for one within 1/2 that is not whole, as {first.written.text} for {format_true(first)}; "
        f"places=4 (--places 4) asks for decimals"
    ]


def summary(judgement: Judgement) -> str:
    """`23 numbers: 17 right, 4 slips, 2 follow from them`."""
    count = {kind: len(judgement.of(kind)) for kind in ("right", "rounded", "follows", "slip")}
    total = len(judgement.verdicts)
    parts = [f"{count['right']} right"] if count["right"] < total else ["all right" if total > 1 else "right"]
    if count["slip"]:
        parts.append(f"{count['slip']} slip{_s(count['slip'])}")
    if count["follows"]:
        them = "them" if count["slip"] > 1 else "it"
        parts.append(f"{count['follows']} follow{'s' if count['follows'] == 1 else ''} from {them}")
    if count["rounded"]:
        parts.append(f"{count['rounded']} off only as your rounded numbers are")
    return f"{total} number{_s(total)}: {', '.join(parts)}"


def judgement_data(judgement: Judgement) -> dict[str, Any]:
    """Every number with its verdict; rows and columns are counted from 1."""
    return {
        "right": bool(judgement),
        "summary": summary(judgement),
        "notes": notes(judgement),
        "strays": stray_sentences(judgement),
        "slips": [_sentence(judgement, group) for group in _groups(judgement)],
        "numbers": [
            {
                **_placed(verdict.place),
                "given": verdict.written.text,
                "exact": format_true(verdict),
                "verdict": verdict.kind,
                "follows_from": [_placed(root) for root in sorted(verdict.roots) if root != verdict.place],
            }
            for verdict in judgement.verdicts
        ],
    }


def _placed(place: Place) -> dict[str, Any]:
    name, head, row, column = place
    return {"step": name, "head": head + 1, "row": row + 1, "column": column + 1}


def _noun(name: str, many: int) -> str:
    """`weight`, `weights`; q, k and v have no plural."""
    return f"{NOUNS[name]}{_s(many)}" if name in NOUNS else name


def _listed(places: Sequence[int]) -> str:
    return _joined([str(place + 1) for place in places])


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _s(many: int) -> str:
    return "" if many == 1 else "s"
