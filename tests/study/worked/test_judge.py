"""Judging answers: the notes' slips, roundings that are none, slips carried on, masks, heads, bad answers."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import lattend as lt
from lattend.errors import DomainError, NamingError, TensorError
from lattend.study.worked.answer import read_number
from lattend.study.worked.work import EXAMPLE

FIRST = [".1967", ".5343", ".0723", ".1967"]
NOTES = {
    "scores": [[1, 2, 0, 1], [2, 4, 0, 2], [0, 0, 0, 0], [1, 2, 0, 1]],
    "sums": ["13.8256", "70.3763", "4", "13.8256"],
    "weights": [FIRST, [".1050", ".7757", ".0142", ".1050"], [".25"] * 4, FIRST],
    "outputs": [["0", ".6624"], ["0", ".3292"], ["0", "1"], ["0", ".6624"]],
}


def only(row, values, columns, rows=4):
    """An answer of one row."""
    return [list(values) if i == row else [None] * columns for i in range(rows)]


def test_the_notes():
    """Each of .1967, .5343 and .7757 is off in its last digit; .6624 follows from .1967 alone."""
    result = lt.study.work(**EXAMPLE).check(NOTES)
    assert not result
    assert result.terminal(200).splitlines() == [
        "rows 1 and 4, weights 1 and 4: you have .1967, exact .1966; "
        "output 2 of rows 1 and 4 follow from them",
        "rows 1 and 4, weight 2: you have .5343, exact .5344",
        "row 2, weight 2: you have .7757, exact .7758",
        "44 numbers: 35 right, 7 slips, 2 follow from them",
    ]
    output = next(v for v in result.verdicts if v.place == ("outputs", 0, 0, 1))
    assert output.roots == {("weights", 0, 0, 0), ("weights", 0, 0, 3)}


def test_one_slip_is_told_once():
    answer = {
        "weights": only(0, [".1967", ".5344", ".0723", ".1966"], 4),
        "outputs": only(0, [0, ".6623"], 2),
    }
    result = lt.study.work(**EXAMPLE).check(answer)
    exact_line = "row 1, weight 1: you have .1967, exact .1966"
    # 2 · .1967 + .0723 + .1966 = .6623
    assert result.terminal(200).splitlines()[0] == f"{exact_line}; output 2 of row 1 follows from it"
    assert len(result.slips) == 1


def test_rounded_numbers_are_no_slip():
    """3 · .197 + .072 = .663: off in the last digit, as the weights are rounded to three."""
    rounded = {"weights": only(0, [".197", ".534", ".072", ".197"], 4), "outputs": only(0, [0, ".663"], 2)}
    result = lt.study.work(**EXAMPLE).check(rounded)
    assert result
    assert str(result) == "6 numbers: 5 right, 1 off only as your rounded numbers are"


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        ("0.6621", "rounded"),  # 3 * .1966 + .0723
        (".663", "rounded"),  # 3 * .197 + .072
        ("0.67", "rounded"),  # 3 * .20 + .07
        ("0.6622", "right"),
        ("0.6620", "slip"),
        ("0.6623", "slip"),
        (".661", "slip"),
        (".664", "slip"),
        ("0.68", "slip"),
    ],
)
def test_weights_that_are_not_on_the_sheet_may_be_rounded(output, kind):
    result = lt.study.work(**EXAMPLE).check({"outputs": [["0", output]]})
    assert [verdict.kind for verdict in result.verdicts] == ["right", kind]
    if kind == "rounded":
        assert str(result) == "2 numbers: 1 right, 1 off only as your rounded numbers are"


@given(
    tokens=st.lists(st.tuples(*[st.integers(-2, 2)] * 3), min_size=2, max_size=4),
    places=st.integers(2, 5),
    rounds=st.sets(st.sampled_from(["exponentials", "sums", "weights"])),
)
def test_a_student_who_rounds_any_steps_makes_no_slip(tokens, places, rounds):
    """The oracle is a pupil: plain decimals, each chosen step rounded, and the outputs alone handed in."""
    outputs: list[list[str]] = []
    unit = Decimal(1).scaleb(-places)

    def kept(step, numbers):
        return [x.quantize(unit, ROUND_HALF_UP) for x in numbers] if step in rounds else numbers

    for query in tokens:
        scores = [sum(x * y for x, y in zip(query, key, strict=True)) for key in tokens]
        powers = [Decimal(score).exp() for score in scores]
        assume("exponentials" not in rounds or min(powers) > Decimal("0.1"))
        powers = kept("exponentials", powers)
        (total,) = kept("sums", [sum(powers, Decimal(0))])
        weights = kept("weights", [power / total for power in powers])
        mixed = [
            sum((w * key[i] for w, key in zip(weights, tokens, strict=True)), Decimal(0)) for i in range(3)
        ]
        outputs.append([str(x.quantize(unit, ROUND_HALF_UP)) for x in mixed])
    judged = lt.study.work(tokens).check({"outputs": outputs})
    assert not judged.slips


def test_a_sheet_may_end_early():
    worked = lt.study.work(**EXAMPLE)
    rows = worked.weights.decimals()
    assert str(worked.check({"weights": rows[:2]})) == "8 numbers: all right"
    assert (
        worked.check({"weights": rows[:2]}).json()
        == worked.check({"weights": [*rows[:2], None, None]}).json()
    )


def test_rounding_does_not_hide_a_slip_before_it():
    answer = {"scores": [[1, 2, 0, 2]], "outputs": [["0", "0.4224"]]}
    result = lt.study.work(**EXAMPLE).check(answer)
    # scores 1, 2, 0, 2: 2 * .1470 + .0541 + .3995 = .7476, and .4224 comes from no rounding of these
    assert [verdict.place[:1] for verdict in result.slips] == [("scores",), ("outputs",)]
    answer["outputs"] = [["0", "0.7476"]]  # from weights that are rounded; unrounded they give .7475
    result = lt.study.work(**EXAMPLE).check(answer)
    assert [verdict.kind for verdict in result.verdicts] == ["right"] * 3 + ["slip", "right", "follows"]


def test_what_the_own_numbers_would_give_is_said():
    answer = {"weights": only(0, [".30", ".5344", ".0723", ".1966"], 4), "outputs": only(0, [0, ".9"], 2)}
    result = lt.study.work(**EXAMPLE).check(answer).terminal(200)
    assert "row 1, weight 1: you have .30, exact .1966" in result
    assert "output 2 of row 1 follows from it" in result  # .6 + .0723 + .1966 = .87
    answer["outputs"] = only(0, [0, ".95"], 2)
    result = lt.study.work(**EXAMPLE).check(answer).terminal(200)
    assert "row 1, output 2: you have .95, exact .6622, and .8689 from your numbers before it" in result


def test_a_wrong_score_carried_on_with_all_digits():
    """Weights are written to two digits, the output was worked out from unrounded ones."""
    powers = np.exp([1.0, 2, 0, 2])
    weights = powers / powers.sum()
    answer = {
        "scores": only(0, [1, 2, 0, 2], 4),
        "weights": only(0, [f"{weight:.2f}" for weight in weights], 4),
        "outputs": only(0, [0, f"{weights @ [2, 0, 1, 1]:.6f}"], 2),
    }
    result = lt.study.work(**EXAMPLE).check(answer)
    first, last = result.terminal(200).splitlines()
    assert (
        first == "row 1, score 4: you have 2, exact 1; weights of row 1 and output 2 of row 1 follow from it"
    )
    assert last == "10 numbers: 4 right, 1 slip, 5 follow from it"


def test_what_is_multiplied_by_nought_is_no_source():
    """All keys end in 0, so that scores come from the first number of q alone, whatever the second is."""
    answer = {"q": only(0, [2, 3], 2), "scores": only(0, [2, 4, 0, 2], 4)}
    first, second, _ = lt.study.work(**EXAMPLE).check(answer).terminal(200).splitlines()
    assert first == "row 1, q 1: you have 2, exact 1; scores of row 1 follow from it"
    assert second == "row 1, q 2: you have 3, exact 2"


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 3), st.integers(0, 3), st.integers(-3, 3).filter(bool), st.integers(2, 8))
def test_a_slip_in_a_score_is_the_only_one(row, column, off, places):
    """Whoever goes on rightly from one wrong score makes one slip, at any precision."""
    worked = lt.study.work(**EXAMPLE)
    scores = worked.scores.values
    scores[row, column] += off
    powers = np.exp(scores)
    weights = powers / powers.sum(1, keepdims=True)
    written = lambda table: [[f"{x:.{places}f}" for x in line] for line in table.tolist()]  # noqa: E731
    result = worked.check(
        {
            "scores": scores.astype(int).tolist(),
            "exponentials": written(powers),
            "sums": written(powers.sum(1, keepdims=True)),
            "weights": written(weights),
            "outputs": written(weights @ worked.v.values),
        }
    )
    assert [slip.place for slip in result.slips] == [("scores", 0, row, column)]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12))
def test_every_right_answer_passes(places):
    worked = lt.study.work(**EXAMPLE, rule="causal", scale="sqrt")
    result = worked.check({step.name: step.decimals(places) for step in worked.steps})
    assert result and not result.of("rounded")
    assert str(result) == "100 numbers: all right"  # 3 · 8 + 4 · 16 + 4 + 8


def test_exact_forms_are_compared_exactly():
    worked = lt.study.work(**EXAMPLE)
    assert worked.check({"weights": only(0, ["e/(1 + e)^2", "e^2/(1+e)^2", "1/(1+e)^2", "e/(1+e)^2"], 4)})
    result = worked.check({"weights": only(0, ["1/5", None, None, None], 4)})
    assert str(result).startswith("row 1, weight 1: you have 1/5, exact e/(e^2 + 2e + 1)")


def test_masked_scores():
    worked = lt.study.work(**EXAMPLE, rule="causal")
    right = only(0, [1, "-inf", "−∞", float("-inf")], 4)
    assert worked.check({"masked": right})
    result = worked.check(
        {"masked": only(0, [1, 2, "-inf", "-inf"], 4), "weights": only(0, [".27", ".73", 0, 0], 4)}
    )
    said = result.terminal(200).splitlines()[0]
    assert said == "row 1, masked score 2: you have 2, exact -inf; weights of row 1 follow from it"


def test_heads():
    worked = lt.study.work(**EXAMPLE, heads=2)
    answer = [worked.weights.decimals()[0], only(1, ["0.3", "0.25", "0.25", "0.25"], 4)]
    assert worked.check({"weights": answer})  # 0.25 and 0.3 are half a unit apart
    answer[1] = only(1, ["0.30", "0.25", "0.25", "0.25"], 4)
    result = worked.check({"weights": answer, "mixed": [only(1, [0], 1), only(1, ["1.1"], 1)]})
    said = result.terminal(200).splitlines()[0]
    first, follows = said.split("; ")
    assert first == "head 2, row 2, weight 1: you have 0.30, exact 0.2500"
    assert follows == "mixed value 1 of row 2 of head 2 follows from it"


def test_places_ask_for_so_many_digits():
    worked = lt.study.work(**EXAMPLE)
    answer = {"weights": only(0, [".2", ".5344", ".0723", ".1966"], 4)}
    assert worked.check(answer)
    assert len(worked.check(answer, places=4).slips) == 1
    assert worked.check({"scores": only(0, [1, 2, 0, 1], 4)}, places=4)  # whole numbers are exact


@pytest.mark.parametrize(
    ("given_", "half"),
    [
        (".1967", "0.00005"),
        ("1", "0.5"),
        ("0.10", "0.005"),
        (0.25, "0.005"),
        ("1e3", "500"),
        ("−1.5", "0.05"),
    ],
)
def test_half_a_unit_of_the_last_digit(given_, half):
    written = read_number(given_)
    assert written is not None and written.half == type(written.half)(half)


def test_nothing_is_no_number():
    assert [read_number(given_) for given_ in (None, "", " ? ", "–")] == [None] * 4


def test_a_hopeless_answer_is_told_in_short():
    worked = lt.study.work([[i, 1] for i in range(9)], *(EXAMPLE[name] for name in ("wq", "wk", "wv")))
    result = worked.check({"scores": [["-1"] * 9] * 9, "q": [["0.5", 7]] * 9})
    lines = result.terminal(300).splitlines()
    assert lines[0] == "row 1, q 1: you have 0.5, exact 0.0"
    assert (
        len(lines) == 26
        and lines[-2] == f"and {len(result.json()['slips']) - 24} more such lines, which JSON has"
    )


def test_json():
    data = lt.study.work(**EXAMPLE).check(NOTES).json()
    assert data["right"] is False and len(data["slips"]) == 3
    output = next(n for n in data["numbers"] if n["step"] == "outputs" and n["row"] == 1 and n["column"] == 2)
    assert output["verdict"] == "follows"
    assert output["follows_from"][0] == {"step": "weights", "head": 1, "row": 1, "column": 1}


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ({}, NamingError, "an answer has rows of numbers for some of q, k, v, scores"),
        ([1, 2], NamingError, r"got \[1, 2\]"),
        ({"wieghts": []}, NamingError, "the work has no step wieghts; .* did you mean weights"),
        (
            {"weights": [[1, 2, 3, 4, 5]]},
            TensorError,
            "weights in the answer must be 4 rows of 4 numbers, .*; row 1 has 5 numbers$",
        ),
        ({"sums": [1] * 5}, TensorError, "sums in the answer must be 4 rows of 1 number"),
        ({"weights": 3}, TensorError, "it is 3$"),
        ({"sums": ["a", None, None, None]}, DomainError, 'sums, row 1, column 1: "a" is not a number'),
        ({"sums": [float("nan"), 1, 1, 1]}, DomainError, "sums, row 1, column 1: nan is not a finite number"),
        (
            {"scores": [["1e999999999", 1, 1, 1]] * 4},
            DomainError,
            "scores, row 1, column 1: 1e999999999 has a power of ten beyond 1,000,000; no number here has",
        ),
        ({"scores": [["1e-999999999999999999999", 1, 1, 1]] * 4}, DomainError, "beyond 1,000,000"),
        ({"sums": [None] * 4}, DomainError, "the answer has no number in it"),
    ],
)
def test_bad_answers(answer, error, message):
    with pytest.raises(error, match=message):
        lt.study.work(**EXAMPLE).check(answer)


def test_the_shape_that_is_wanted_of_several_heads():
    worked = lt.study.work(**EXAMPLE, heads=2)
    table = [[1] * 4] * 4
    wanted = "scores in the answer must be 2 heads of 4 rows of 4 numbers"
    for answer, result in (
        (table, r"it has no list for each head, as in \[head 1, head 2\]"),
        ([table, table, table], "it has 3 heads"),
        ([table, [*table, *table]], "head 2 has 8 rows"),
        ([table, [[], [1] * 4, None, None]], "head 2, row 1 has 0 numbers"),
        ([table, [[1] * 4, 7, None, None]], "head 2, row 2 is 7"),
        ([table, [[1, 2, 3, [4]], None, None, None]], "head 2, row 1, number 4 is a list"),
    ):
        with pytest.raises(TensorError, match=f"{wanted}, with None for a number, row or head .*; {result}$"):
            worked.check({"scores": answer})


@pytest.mark.parametrize(
    ("heads", "answer", "verdict"),
    [
        (1, {"weights": [["0.1966"]]}, "1 number: right"),
        (1, {"outputs": [["0"]]}, "1 number: right"),
        (1, {"weights": [["0.1966", "0.5344"], None, [".25"]]}, "3 numbers: all right"),
        (2, {"weights": [[["0.1966"], ["0.1050", "0.7758"]]]}, "3 numbers: all right"),
        (2, {"sums": [["13.8256"]]}, "1 number: right"),
    ],
)
def test_the_last_numbers_rows_and_heads_may_be_missing(heads, answer, verdict):
    assert str(lt.study.work(**EXAMPLE, heads=heads).check(answer)) == verdict


def test_nothing_for_a_head_or_a_row():
    worked = lt.study.work(**EXAMPLE, heads=2)
    weights, sums = worked.weights.decimals(), worked.sums.decimals()
    answer = {"weights": [None, [None, weights[1][1], None, None]], "sums": [None, sums[1]], "q": None}
    assert str(worked.check(answer)) == "8 numbers: all right"
    flat = [[total for (total,) in head] for head in sums]
    assert str(worked.check({"sums": flat})) == "8 numbers: all right"
    assert len(lt.study.work(**EXAMPLE).check({"weights": [None, [".105"] * 4, None, None]}).verdicts) == 4


def test_slips_alike_that_own_numbers_tell_apart():
    """Rows 1 and 4 have the same exact weights, but a wrong score leads elsewhere in row 1."""
    answer = {
        "scores": only(0, ["3", None, None, None], 4),
        "weights": [[".5", None, None, None], [None] * 4, [None] * 4, [".5", None, None, None]],
    }
    lines = lt.study.work(**EXAMPLE).check(answer).terminal(200).splitlines()
    assert lines == [
        "row 1, score 1: you have 3, exact 1",
        "row 1, weight 1: you have .5, exact .1966, and .6439 from your numbers before it",
        "row 4, weight 1: you have .5, exact .1966",
        "3 numbers: 0 right, 3 slips",
    ]


def test_several_slips_and_what_follows_from_each():
    """A wrong score in row 1, a wrong value of key 2, and an output of row 3 that follows from the latter."""
    worked = lt.study.work(**EXAMPLE)
    powers = [math.exp(score) for score in (3, 2, 0, 1)]
    answer = {
        "v": only(1, [None, "3"], 2),
        "scores": only(0, ["3", None, None, None], 4),
        "sums": [f"{sum(powers):.4f}", "70.3763", "4", "99"],
        "outputs": only(2, [None, "1.75"], 2),  # (2 + 3 + 1 + 1)/4
    }
    lines = worked.check(answer).terminal(200).splitlines()
    assert lines == [
        "row 2, v 2: you have 3, exact 0; output 2 of row 3 follows from it",
        "row 1, score 1: you have 3, exact 1; the sum of row 1 follows from it",
        "row 4, sum: you have 99, exact 13.8256",
        "7 numbers: 2 right, 3 slips, 2 follow from them",
    ]


def test_a_sum_of_nought_is_a_slip_and_nothing_more():
    result = lt.study.work(**EXAMPLE).check(
        {"sums": [0, "70.3763", 4, "13.8256"], "weights": only(0, [".1", ".1", ".1", ".1"], 4)}
    )
    assert ("sums", 0, 0, 0) in [slip.place for slip in result.slips]


def test_a_whole_number_is_told_apart_from_a_root():
    """Scores over sqrt(2): 1 is within 1/2 of 1.4142, 3 is not within 1/2 of 2.8284 at four places."""
    worked = lt.study.work(**EXAMPLE, scale="sqrt")
    answer = {"scores": only(1, [1, 4, 0, None], 4)}
    assert worked.check(answer).terminal(200).splitlines() == [
        "row 2, score 2: you have 4, exact 2.8284",
        "3 numbers: 2 right, 1 slip",
        "1 whole number passes for one within 1/2 that is not whole, as 1 for 1.4142; "
        "places=4 (--places 4) asks for decimals",
    ]
    assert len(worked.check(answer, places=4).slips) == 2
    assert worked.check(answer, places=4).json()["notes"] == []


def test_repr_is_short():
    assert repr(lt.study.work(**EXAMPLE).check(NOTES)) == (
        "<Judgement 44 numbers: 35 right, 7 slips, 2 follow from them>"
    )


@settings(max_examples=60, deadline=None)
@given(st.decimals(-9999, 9999, allow_nan=False, places=4))
def test_a_decimal_comma_is_a_point(number):
    point = read_number(f"{number:.4f}")
    comma = read_number(f"{number:.4f}".replace(".", ","))
    assert point is not None and comma is not None
    assert (comma.value, comma.half, comma.has_comma) == (point.value, point.half, True)
    assert not point.has_comma


def test_decimal_commas_are_judged_as_points_and_said_to_be():
    def with_commas(given):
        if isinstance(given, list):
            return [with_commas(one) for one in given]
        return given.replace(".", ",") if isinstance(given, str) else given

    head = lt.study.work(**EXAMPLE)
    result, wanted = head.check({name: with_commas(rows) for name, rows in NOTES.items()}), head.check(NOTES)
    assert [v.kind for v in result.verdicts] == [v.kind for v in wanted.verdicts]
    assert (
        result.terminal(200).splitlines()[-1] == "22 decimal commas are read as a point: 13,8256 as 13.8256"
    )
    assert result.terminal(200).splitlines()[1] == "rows 1 and 4, weight 2: you have ,5343, exact .5344"


def test_a_comma_that_may_separate_thousands():
    head = lt.study.work([[3, 1], [2, 0]])  # scores 10, 6, 6, 4
    assert head.check({"exponentials": [["22026,47", "403,429"], None]})
    with pytest.raises(DomainError, match=r"row 1, column 2: 403,429 may be 403429 or 403.429, as 22026.47"):
        head.check({"exponentials": [["22026.47", "403,429"], None]})
    assert head.check({"weights": [["0.9820", "0,018"], None]})  # no thousands begin with 0


@pytest.mark.parametrize("row", [[2, 0, 1, 1], [[2, 0], [1, 1]], [2, 0, [1, 1]]])
def test_a_stray_vector_is_named_and_the_rest_is_judged(row):
    result = lt.study.work(**EXAMPLE).check({"q": [[1, 2], row, [0, 1], [1, 2]]})
    assert not result
    assert result.terminal(200).splitlines() == [
        "row 2, q: 2 numbers too many at its end, 1 and 1, which are left out",
        "row 4, q 2: you have 2, exact 1",
        "8 numbers: 7 right, 1 slip",
    ]
    assert result.json()["strays"] == result.terminal(200).splitlines()[:1]
    alone = lt.study.work(**EXAMPLE).check({"q": [None, row, None, [1, 1]]})
    assert not alone and not alone.slips


def test_rows_that_are_all_too_long_are_no_strays():
    with pytest.raises(TensorError, match="row 1 has 4 numbers; decimal commas need quotes"):
        lt.study.work(**EXAMPLE).check({"q": [[1, 2, 3, 4]] * 4})
    with pytest.raises(TensorError, match=r"row 1 has 3 numbers$"):
        lt.study.work(**EXAMPLE).check({"q": [[1, 2, 3]] * 4})


def test_a_stray_number_of_one_head():
    pair = lt.study.work(**EXAMPLE, heads=2)
    result = pair.check({"q": [[[1], [2], [0], [1]], [[2], [0, 7], [1], [1]]]})
    assert (
        result.terminal(200).splitlines()[0]
        == "head 2, row 2, q: 1 number too many at its end, 7, which is left out"
    )
