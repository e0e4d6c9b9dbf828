"""Reports of steered queries: how they come about, their facts, why none is better, and the same in LaTeX."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lattend.report.latex import aligned, number
from lattend.report.numbers import format_number, format_weight, format_weights, log_sum
from lattend.report.report import Report
from lattend.report.table import Facts, Table
from lattend.study.steering.ray import EXACTLY, LIMIT, NEVER, Certificate, Ray
from lattend.study.steering.steer import Steered, SteeredHeads, one, plain
from lattend.wording import many

if TYPE_CHECKING:
    from lattend.study.steering.trial import Trial

MOST_ROWS = 12  # keys in a table
MOST_OTHERS = 3  # of them with no wanted weight, where there are more keys
MOST_TERMS = 8  # of a relation that are written out
MOST_POWER = 9  # of weights in a product that is written out
LONGEST = 9  # characters of a fraction
NOTICED = 1e-9  # of the largest number of a relation
six_digits = partial(format_number, digits=6)
LEAST = "KL(wanted ‖ attention) is least"
FADING = "What the others get fades as β grows, and never is 0."


def steered_report(steered: Steered) -> Report:
    """How the query comes about, its facts, and the keys in a table."""
    ray = steered.ray
    m, s = len(ray.wanted), int((ray.wanted > 0).sum())
    title = f"Attention over {many(m, 'key')}, steered to {s:,} of them"
    return Report(
        title,
        [
            steered.how,
            _facts(steered),
            key_table(ray.wanted, tidy(plain(steered.logits)), plain(steered.weights)),
        ],
        steered.json(),
    )


def heads_report(steered: SteeredHeads) -> Report:
    """The heads in a table."""
    m, heads = len(steered.heads[0].ray.wanted), len(steered.heads)
    rows: list[tuple[str, ...]] = []
    for name, head in named_heads(steered)[:MOST_ROWS]:
        beta = "" if head.ray.face.all() else six_digits(one(head.sharpness))
        reach = "never, nearest by KL" if head.reach == NEVER else head.reach
        error, bound = one(head.error), one(head.bound)
        texts = (six_digits(error), "") if head.ray.face.all() else (positive(error), positive(bound))
        rows.append((name, reach, beta, *texts))
    if heads > MOST_ROWS:
        rows.append((f"{heads - MOST_ROWS:,} more", "", "", "", ""))
    table = Table(("head", "reached", "sharpness", "error", "bound"), rows)
    return Report(
        f"Attention over {many(m, 'key')}, steered in {many(heads, 'head')}", [table], steered.json()
    )


def named_heads(steered: SteeredHeads) -> list[tuple[str, Steered]]:
    """Each head with its place, `0, 1`."""
    places = np.ndindex(steered.shape)
    return [(", ".join(map(str, at)), head) for at, head in zip(places, steered, strict=True)]


def _facts(steered: Steered) -> Facts:
    ray = steered.ray
    facts = [("query", format_vector(plain(steered.query)))]
    if steered.scale != 1:
        facts.append(("scale", f"{six_digits(steered.scale)}, in logits = scale·Kq"))
    if not ray.face.all():
        keys = "the wanted keys" if ray.reach == LIMIT else f"the {ray.face.sum():,} keys of the nearest face"
        text = f"the mean weight on {keys} is e^β times the greatest other"
        facts.append(("sharpness", f"β = {six_digits(one(steered.sharpness))}: {text}"))
    facts += _formula(ray)
    facts.append(("reached", steered.reach))
    if ray.certificate is not None:
        facts += why(ray.certificate, ray.wanted)
    total = "half the sum of the differences of weights"
    error, bound = one(steered.error), one(steered.bound)
    if ray.face.all():  # the bound is the error itself
        facts.append(("error", f"{six_digits(error)}, {total}"))
    else:
        facts.append(("error", f"{positive(error)}, {total}; bound {positive(bound)}"))
    if steered.output is not None:
        facts.append(("output", format_vector(plain(steered.output))))
        facts.append(("wanted", format_vector(plain(steered.wanted_output))))
        apart, most = one(steered.output_error), one(steered.output_bound)
        text = f"the diameter of the values times the {'error' if ray.face.all() else 'bound'} above"
        facts.append(("apart", f"{six_digits(apart)}; bound {six_digits(most)}, {text}"))
    return Facts(facts)


def _formula(ray: Ray) -> list[tuple[str, str]]:
    """The weights as a formula, where orthonormal keys are to share them equally and others get nothing."""
    equal = np.ptp(ray.wanted[ray.wanted > 0]) == 0
    if ray.reach != LIMIT or not equal or not _orthonormal(ray.keys):
        return []
    from lattend.study.exact.shares import share_text  # loads sympy
    from lattend.study.steering.formulas import weight_formula

    m, s = len(ray.wanted), int((ray.wanted > 0).sum())
    formula = weight_formula([Fraction(1, s)] * s)
    wanted, other = share_text(formula.weights[0]), share_text(formula.other)
    return [("formula", f"{wanted} on each wanted key, {other} on each other, with m = {m:,} keys")]


def key_table(wanted: Any, logits: Any, weights: Any) -> Table:
    """The keys with the greatest wanted or reached weights, and the rest as one; `wanted` may be None."""
    wish = np.zeros(len(weights)) if wanted is None else wanted
    shown = len(weights)
    if shown > MOST_ROWS:
        shown = min(MOST_ROWS, int((wish > 0).sum()) + MOST_OTHERS)
    texts = weight_texts(logits, weights)
    order = sorted(np.lexsort((-weights, -wish))[:shown].tolist())
    rows: list[tuple[str, ...]] = []
    for at in order:
        want, logit = float(wish[at]), float(logits[at])
        rows.append((str(at), six_digits(want), six_digits(logit), texts[at]))
    rest = np.setdiff1d(np.arange(len(weights)), order)
    if len(rest):
        most, want = float(logits[rest].max()), float(wish[rest].sum())
        total = log_sum(logits)
        got = format_weight(log_sum(logits[rest]) - total, log_sum(logits[order]) - total, 6)
        rows.append((f"{len(rest):,} more", six_digits(want), f"≤ {six_digits(most)}", got))
    if wanted is None:
        return Table(("key", "logit", "weight"), [(name, *cells) for name, _, *cells in rows])
    return Table(("key", "wanted", "logit", "weight"), rows)


def weight_texts(logits: Any, weights: Any) -> list[str]:
    """The weights as text; one that a float rounds to 0 or 1 comes from the logits."""
    exact = format_weights(logits, 6)
    texts = map(six_digits, weights.tolist())
    return [other if text in ("0", "1") else text for text, other in zip(texts, exact, strict=True)]


def positive(number: float) -> str:
    """A number above 0 that a float may round to 0."""
    return six_digits(number) if number else "under 1e−300"


def how(steered: Steered) -> str:
    """How the query comes about, where it leads, and whether floats are too coarse for it."""
    error, promised = one(steered.error), steered.ray.promised(one(steered.sharpness))
    if error <= 1.01 * promised + 1e-6:
        return _way(steered.ray)
    digits = f"with more of them the error would be at most {six_digits(promised)}"
    return f"{_way(steered.ray)} But the digits of these numbers are too few for so long a query: {digits}."


def _way(ray: Ray) -> str:
    if ray.reach == EXACTLY:
        if ray.independent:
            return f"{_settable(ray)}: here log(m·wanted), so that the weights are the wanted ones."
        return (
            "The logarithms of the wanted weights lie in the span of the keys' columns and ones, so that "
            "this query gives them exactly."
        )
    if ray.reach == LIMIT:
        if ray.independent:
            return f"{_settable(ray)}: β + log(s·wanted) on the s wanted keys, 0 elsewhere. {FADING}"
        return (
            f"The convex hull of {_count(int(ray.face.sum()), 'wanted key')} is a face of the hull of all: "
            f"from there a direction leads away from all other keys at once. {FADING}"
        )
    assert ray.certificate is not None
    because = f": {_no_face(ray.wanted)}" if math.isinf(ray.certificate.total) else ""
    end = f"is nearest by KL: {LEAST}"
    if not ray.face.all():
        end = f"nears the nearest by KL as β grows: {LEAST} there"
    return f"No query gives these weights{because}. This one {end}."


def _no_face(wanted: Any) -> str:
    """Why the wanted keys cannot be favoured alone."""
    alone = np.flatnonzero(wanted).tolist()
    if len(alone) == 1:
        return f"no corner of the hull of the keys has {format_keys(alone)} and no other"
    return f"no face (side, edge) of the hull of the keys has {format_keys(alone)} and no others"


def _orthonormal(keys: Any) -> bool:
    return np.allclose(keys @ keys.T, np.eye(len(keys)), atol=1e-9)


def _settable(ray: Ray) -> str:
    if _orthonormal(ray.keys):
        return "The keys are orthonormal, and q = Σ βᵢkᵢ has logits βᵢ"
    if ray.levelled:
        return "The keys are linearly independent, so that every logit can be set"
    return "The keys are affinely independent, so that every logit can be set up to a common constant"


def why(certificate: Certificate, wanted: Any) -> list[tuple[str, str]]:
    """The certificate in facts: the relation, what it asks of the weights, the least distance."""
    largest = max(abs(y) for y in certificate.relation)
    least = max(NOTICED, certificate.within)  # smaller parts change nothing that is known
    relation = [y if abs(y) > least * largest else 0 for y in certificate.relation]
    about, which = "", "every query"
    if certificate.within > NOTICED:
        about = f", within {format_number(certificate.within, 1)} of the size of the keys"
        which = "every query that is not extremely long"
    same = f"so that {which} gives both sides the same logit"
    facts = [("because", f"{_sides(relation)}{about}, {same}")]
    asks = _products(relation)
    inside = math.isinf(certificate.total)
    if inside:
        barred = [at for at, y in enumerate(relation) if y > 0 and wanted[at] == 0]
        together = " together" if len(barred) > 1 else ""
        facts.append(
            ("so", f"{format_keys(barred)}{together} cannot fade while the wanted keys keep their weights")
        )
    elif asks:
        left, right = (_product(relation, wanted, sign) for sign in (1, -1))
        facts.append(
            (
                "so",
                f"attention has {asks}; the wanted weights have {six_digits(left)} and {six_digits(right)}",
            )
        )
    else:
        factors = "with y the factors above, those on the left negative"
        sentence = f"attention has Σ yᵢ log aᵢ = 0, and the wanted weights {six_digits(certificate.total)}"
        facts.append(("so", f"{factors}, {sentence}"))
    alone = np.flatnonzero(wanted)
    if len(alone) == 1:
        most = six_digits(float(certificate.weights[alone[0]]))
        facts.append(("at most", f"{most} for key {alone[0]}, whatever the query"))
    return [
        *facts,
        ("least KL", f"{six_digits(certificate.nats)} nats from the wanted weights, for {which}"),
    ]


def _sides(relation: Sequence[Any]) -> str:
    """`key 0 + key 2 = 2·key 1`, from numbers with sum 0."""
    sides = [
        [(at, abs(y)) for at, y in enumerate(relation) if (y > 0) == positive and y != 0]
        for positive in (False, True)
    ]
    return " = ".join(_terms(side) for side in sides)


def _terms(side: Sequence[tuple[int, Any]]) -> str:
    factors = [(at, _factor(y)) for at, y in side[:MOST_TERMS]]
    shown = [f"key {at}" if factor == "1" else f"{factor}·key {at}" for at, factor in factors]
    more = len(side) - len(shown)
    return " + ".join([*shown, f"… ({more} more)"] if more > 0 else shown)


def _factor(y: Any) -> str:
    """A short fraction as it is, other numbers in six digits."""
    text = str(y) if isinstance(y, Fraction) else ""
    return text if 0 < len(text) <= LONGEST else six_digits(float(y))


def _products(relation: Sequence[Any]) -> str:
    """`a1^2 = a0·a2`, where the relation has a few small whole numbers; else nothing."""
    used = [y for y in relation if y != 0]
    has_integers = all(isinstance(y, (int, Fraction)) and y == int(y) and abs(y) <= MOST_POWER for y in used)
    if not has_integers or len(used) > MOST_TERMS:
        return ""

    def side(sign: int) -> str:
        factors = ((at, int(sign * y)) for at, y in enumerate(relation) if sign * y > 0)
        return "·".join(f"a{at}" if y == 1 else f"a{at}^{y}" for at, y in factors)

    return f"{side(-1)} = {side(1)}"


def _product(relation: Sequence[Any], weights: Any, sign: int) -> float:
    return math.prod(
        float(w) ** float(-sign * y) for y, w in zip(relation, weights, strict=True) if sign * y < 0
    )


def format_keys(places: Sequence[int]) -> str:
    """`key 1`, `keys 0, 2`."""
    shown = [str(at) for at in places[:MOST_TERMS]] + (["…"] if len(places) > MOST_TERMS else [])
    return f"key {shown[0]}" if len(shown) == 1 else f"keys {', '.join(shown)}"


def _count(many: int, noun: str) -> str:
    return f"the {noun}" if many == 1 else f"the {many:,} {noun}s"


def tidy(values: Any) -> Any:
    """The numbers of a vector, those that are nothing but rounding as 0."""
    return np.where(np.abs(values) > 1e-12 * np.abs(values).max(), values, 0.0)


def format_vector(values: Any) -> str:
    """`(5, 0)`, long vectors cut."""
    shown = [six_digits(value) for value in tidy(values)[:MOST_TERMS]]
    more = len(values) - len(shown)
    return f"({', '.join(shown)}{f', … {more} more' if more > 0 else ''})"


def trial_latex(trial: Trial) -> str:
    """The query and its weights, and the output where there are values."""
    lines = [_query(trial.query), _weights(trial.weights, trial.scale)]
    if trial.output is not None:
        lines.append(f"z = V^{{\\top}} a &\\approx {_vector(trial.output)}")
    return aligned(*lines)


def steered_latex(steered: Steered) -> str:
    """The query that was found, its weights, those wanted, and why none gives them where none does."""
    lines = [_query(plain(steered.query)), _weights(plain(steered.weights), steered.scale)]
    lines.append(f"w &= {_vector(steered.ray.wanted)}")
    why = steered.certificate
    if why is not None:
        sides = (_mixture(why.relation, sign) for sign in (-1, 1))
        lines.append(f"{' &= '.join(sides)}")
        lines.append(rf"\mathrm{{KL}}(w \,\|\, a) &\ge {number(six_digits(why.nats))}")
    return aligned(*lines)


def _query(query: Any) -> str:
    return f"q &= {_vector(query)}"


def _weights(weights: Any, scale: float) -> str:
    factor = "" if scale == 1 else rf"{number(six_digits(scale))} \cdot "
    return rf"a = \operatorname{{softmax}}({factor}K q) &\approx {_vector(weights)}"


def _vector(numbers: Any) -> str:
    return f"({', '.join(number(six_digits(one)) for one in tidy(numbers))})"


def _mixture(relation: Any, sign: int) -> str:
    """One side of Σ yᵢkᵢ = 0."""
    terms = ((at, sign * float(y)) for at, y in enumerate(relation) if sign * y > 0)
    return " + ".join(
        f"k_{{{at}}}" if y == 1 else rf"{number(six_digits(y))}\, k_{{{at}}}" for at, y in terms
    )
