"""Claims about gradients: read from a sentence, judged by the trend with distance over seeds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lattend.errors import DomainError, NamingError, TextError
from lattend.report.numbers import fixed_beside, format_number, format_share
from lattend.report.report import Printed, Report
from lattend.study.gradients.networks import INITIAL, KINDS, TRAINED

if TYPE_CHECKING:
    from lattend.study.gradients.decay import Gradients, GradientStudy

# Student's t at 97.5%, by degrees of freedom: of a mean of two to ten numbers
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
MOST_SEEDS = len(STUDENT) + 1
VANISHING, GROWING = 0.95, 1.05  # factors per step


@dataclass(frozen=True)
class ConfidenceInterval:
    """A mean and the 95% interval around it."""

    mean: float
    low: float
    high: float

    @staticmethod
    def of(numbers: Sequence[float]) -> ConfidenceInterval:
        """The interval of the mean of two to ten independent numbers, by Student's t.

        >>> ConfidenceInterval.of([1.0, 3.0])  # 2 ± 12.706 · √2/√2
        ConfidenceInterval(mean=2.0, low=-10.706, high=14.706)
        """
        mean = fmean(numbers)
        half = STUDENT[len(numbers) - 2] * stdev(numbers) / math.sqrt(len(numbers))
        return ConfidenceInterval(mean, mean - half, mean + half)

    def exp(self) -> ConfidenceInterval:
        """The same of the exponentials: a geometric mean."""
        return ConfidenceInterval(
            *(math.exp(min(number, 700.0)) for number in (self.mean, self.low, self.high))
        )

    def __str__(self) -> str:
        low, high = (_format(end, VANISHING, GROWING) for end in (self.low, self.high))
        return f"{_format(self.mean)} ({low} to {high})"


def _format(number: float, *compared: float) -> str:
    """Three places, and more beside a number that it is compared with."""
    return fixed_beside(number, 3, *compared) if 0.01 <= abs(number) < 1000 else format_number(number)


def factor(sizes: NDArray[Any]) -> ConfidenceInterval | None:
    """The factor per step of distance, from sizes [seeds, distances].

    For each seed the slope of log size against distance by least squares, from distance 1 on and where the
    size is not 0; then the mean over seeds with its interval. None where a seed has no two such sizes.

    >>> halves = np.array([[9.0, 0.5, 0.25, 0.125], [9.0, 5.0, 2.5, 1.25]])
    >>> round(factor(halves).mean, 9)  # from distance 1 on
    0.5
    """
    slopes: list[float] = []
    for row in sizes:
        at = np.flatnonzero(row > 0)
        at = at[at >= 1]
        if len(at) < 2:
            return None
        slopes.append(float(np.polyfit(at, np.log(row[at]), 1)[0]))
    return ConfidenceInterval.of(slopes).exp()


def ratio(left: NDArray[Any], right: NDArray[Any]) -> ConfidenceInterval | None:
    """How many times as large the sizes [seeds] on the left are; None where one of them is 0."""
    if not (left > 0).all() or not (right > 0).all():
        return None
    return ConfidenceInterval.of(np.log(left / right).tolist()).exp()


LEARNT = 0.9  # share of first symbols that a network which recalls names
FORMS = (
    "rnn vanishes",
    "attention does not vanish",
    "rnn grows",
    "rnn < attention at 32",
    "attention learns",
    "rnn is harder to train than attention",
)
ALIASES = {
    **dict.fromkeys(("rnns", "recurrent"), "rnn"),
    **dict.fromkeys(("lstms",), "lstm"),
    **dict.fromkeys(("2d rnn", "2-d rnn", "grid", "rnn2ds"), "rnn2d"),
    **dict.fromkeys(("convolution", "convolutions", "cnn", "convnet"), "conv"),
    **dict.fromkeys(("self-attention", "transformer"), "attention"),
}
_WHEN = rf"(?:\s+({INITIAL}|{TRAINED}|untrained|trained))?"
_NAME = r"([\w-]+(?: rnn)?)"
_TREND = re.compile(rf"{_NAME}\s+(does\s+not\s*|)(vanish|vanishes|explode|explodes|grow|grows|){_WHEN}", re.I)
_LEARNS = re.compile(rf"{_NAME}\s+(does\s+not\s+|)learns?", re.I)
_HARDER = re.compile(rf"{_NAME}\s+(?:is\s+)?harder(?:\s+to\s+train)?\s+than\s+{_NAME}", re.I)
_SIZES = re.compile(rf"{_NAME}\s*([<>])\s*{_NAME}\s+at\s+(?:distance\s+)?(\d+){_WHEN}", re.I)
# Other ways to say the same
_NOT = re.compile(r"\bdo(?:es)?(?: not|n['’]t)\b", re.I)
_HAVE = re.compile(r"\b(?:(does not) have|ha(?:s|ve)( no)?) (vanish|explod)ing gradients?", re.I)
_FILLERS = re.compile(r"\b(?:the|an?|gradients? of) | gradients?\b", re.I)


@dataclass(frozen=True)
class GradientClaim:
    """A claim as it was read: which networks at which stage, and what is said of them."""

    text: str
    networks: tuple[str, ...]
    stage: str
    distance: int | None
    judge: Callable[[GradientStudy], tuple[bool | None, str]]


@dataclass(frozen=True, eq=False, repr=False)
class GradientVerdict(Printed):
    """Whether a claim holds: True, False, or None where the intervals leave it open; and by which numbers."""

    JSON = "claim=claim.text holds stage=claim.stage because"

    claim: GradientClaim
    holds: bool | None
    because: str

    def __bool__(self) -> bool:
        return self.holds is True

    @property
    def word(self) -> str:
        """The outcome in a word: holds, fails or undecided."""
        return {True: "holds", False: "fails", None: "undecided"}[self.holds]

    def report(self) -> Report:
        return Report(f"{self.claim.text}: {self.word}", [self.because], self.json())

    __repr__ = Printed.__str__


def read_claim(text: str) -> GradientClaim:
    """The claim that a sentence makes; raises where it is none of those that can be judged."""
    sentence = " ".join(text.split())
    plain = _FILLERS.sub("", _HAVE.sub(_does, _NOT.sub("does not", sentence)))
    if match := _SIZES.fullmatch(plain):
        left, sign, right, at, when = match.groups()
        names, distance = (_network(left, text), _network(right, text)), int(at)
        stage = _stage(when)
        return GradientClaim(
            sentence, names, stage, distance, lambda study: _compared(study, names, stage, sign, distance)
        )
    if match := _HARDER.fullmatch(plain):
        harder, easier = (_network(name, text) for name in match.groups())
        return GradientClaim(
            sentence, (harder, easier), TRAINED, None, lambda study: _harder(study, harder, easier)
        )
    if match := _LEARNS.fullmatch(plain):
        name, negated = _network(match[1], text), bool(match[2])
        return GradientClaim(
            sentence, (name,), TRAINED, None, lambda study: _learns(study[name, TRAINED], negated)
        )
    match = _TREND.fullmatch(plain)
    if match and (match[2] or match[3]):
        name, negated, stage = _network(match[1], text), bool(match[2]), _stage(match[4])
        grows = match[3].lower().startswith(("explode", "grow"))
        return GradientClaim(
            sentence, (name,), stage, None, lambda study: _trend(study[name, stage], grows, negated)
        )
    forms = '", "'.join(FORMS)
    raise TextError(f'a claim about gradients is one such as "{forms}"', text, 0, len(text))


def _does(match: re.Match[str]) -> str:
    """`does not vanish`, for `has no vanishing gradients`."""
    verb = "vanish" if match[3].lower() == "vanish" else "explode"
    return f"does not {verb}" if match[1] or match[2] else verb


def _network(name: str, text: str) -> str:
    plain = name.lower()
    plain = ALIASES.get(plain, plain)
    if plain not in KINDS:
        start = text.lower().find(name.lower())
        raise TextError(
            f"no network is named {name}; there are {', '.join(KINDS)}", text, start, start + len(name)
        )
    return plain


def _stage(when: str | None) -> str:
    return TRAINED if when is not None and when.lower() in (TRAINED, "trained") else INITIAL


def judge(study: GradientStudy, text: str) -> GradientVerdict:
    """The claim against what was measured."""
    claim = read_claim(text)
    have = {(one.network, one.stage) for one in study.found}
    for name in claim.networks:
        if (name, claim.stage) not in have:
            more = "steps above 0" if claim.stage == TRAINED else f"networks with {name}"
            raise NamingError(f"{name} was not measured {claim.stage}; measure again with {more}")
    if claim.distance is not None and not 0 <= claim.distance < study.length:
        raise DomainError(
            f"distance {claim.distance} needs a length of {claim.distance + 1}, and it is {study.length}"
        )
    return GradientVerdict(claim, *claim.judge(study))


def judge_all(texts: Sequence[str], **options: Any) -> tuple[GradientStudy, list[GradientVerdict]]:
    """The verdicts on several claims, and the study behind them: what they speak of is measured, no more.

    `options` are those of `measure`; a network is trained only where a claim is about training.

    >>> study, verdicts = judge_all(["rnn vanishes", "rnn < attention at 8"])
    >>> [one.network for one in study.found], [verdict.holds for verdict in verdicts]
    (['rnn', 'attention'], [True, True])
    """
    from lattend.study.gradients.decay import LENGTH, measure

    claims = [read_claim(text) for text in texts]
    names = sorted({name for claim in claims for name in claim.networks})
    farthest = max((claim.distance for claim in claims if claim.distance is not None), default=0)
    study_options = {"length": max(LENGTH, farthest + 1), **options}
    if all(claim.stage != TRAINED for claim in claims):
        study_options["steps"] = 0
    study = measure(names, **study_options)
    return study, [judge(study, text) for text in texts]


def _trend(one: Gradients, grows: bool, negated: bool) -> tuple[bool | None, str]:
    limit = GROWING if grows else VANISHING
    interval = one.factor
    word, side = ("growing", "above") if grows else ("vanishing", "below")
    if interval is None:
        return None, f"{one.network} has a gradient of 0 at all but one distance, so that no factor is fitted"
    reason = (
        f"{one.stage} its gradient is multiplied by {interval} at every step of distance; "
        f"{word} means {side} {limit}, with the whole interval"
    )
    inside, outside = (
        (interval.low > limit, interval.high <= limit)
        if grows
        else (interval.high < limit, interval.low >= limit)
    )
    holds = None if not inside and not outside else inside != negated
    return holds, reason


def _compared(
    study: GradientStudy, names: tuple[str, ...], stage: str, sign: str, distance: int
) -> tuple[bool | None, str]:
    left, right = (study[name, stage] for name in names)
    first, second = (format_number(float(one.mean[distance]), 2) for one in (left, right))
    reason = f"{stage} at distance {distance}: {first} against {second}"
    sizes = left.sizes[:, distance], right.sizes[:, distance]
    interval = ratio(*sizes)
    if interval is None:  # a size of 0 has no ratio: then every seed must say the same
        claimed = np.less(*sizes) if sign == "<" else np.greater(*sizes)
        return (None if claimed.any() and not claimed.all() else bool(claimed.all())), reason
    reason += f", {interval} times as large"
    below, above = interval.high < 1, interval.low > 1
    return (None if not below and not above else below == (sign == "<")), reason


def _learns(one: Gradients, negated: bool) -> tuple[bool | None, str]:
    learnt = one.accuracy >= LEARNT
    least = f"learnt means {format_share(LEARNT, 0)} or more with every seed"
    reason = f"it names {_shares(one)} of the first symbols; {least}"
    return (None if learnt.any() and not learnt.all() else bool(learnt.all()) != negated), reason


def _harder(study: GradientStudy, harder: str, easier: str) -> tuple[bool | None, str]:
    hard, easy = (study[name, TRAINED] for name in (harder, easier))
    reason = f"{harder} names {_shares(hard)} of the first symbols, {easier} {_shares(easy)}"
    learnt, also = hard.accuracy >= LEARNT, easy.accuracy >= LEARNT
    if also.all() and not learnt.any():
        return True, reason
    return (False if learnt.all() and not also.all() else None), reason


def _shares(one: Gradients) -> str:
    return ", ".join(format_share(float(share), 0) for share in np.sort(one.accuracy))
