"""Every error Lattend raises: what was asked, what was found, where, and what to do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from lattend.wording import visible


class LattendError(Exception):
    """Base of every error of Lattend; its message is one readable paragraph.

    `reason` is the same for a person who sees the rule and writes no Python, as at the page. There is no
    __init__: torch.compile cannot raise an error that has one.
    """

    _reason = ""

    @property
    def reason(self) -> str:
        """The message for a person who sees the rule and writes no Python."""
        return visible(self._reason or super().__str__())

    def with_reason(self, reason: str) -> Self:
        """The error itself, with a reason of its own."""
        self._reason = reason
        return self

    @classmethod
    def of_rule(cls, text: str, found: str) -> Self:
        """The error that says of the rule of this text what was found: `looks up data`.

        >>> error = LattendError.of_rule("doc[q] == doc[k]", "looks up data")
        >>> str(error), error.reason
        ('rule "doc[q] == doc[k]" looks up data', 'it looks up data')
        """
        return cls(f'rule "{text}" {found}').with_reason(f"it {found}")

    def __str__(self) -> str:
        return visible(super().__str__())


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What may have been meant: `text[start:end]` becomes `replacement`."""

    start: int
    end: int
    replacement: str

    def applied(self, text: str) -> str:
        """The text as it may have been meant."""
        return text[: self.start] + self.replacement + text[self.end :]


class TextError(LattendError):
    """A rule or formula text that cannot be read; points at the exact characters.

    `text[start:end]` is the part the message speaks of; `reason` is the message without the text.
    """

    def __init__(
        self,
        message: str,
        text: str,
        start: int,
        end: int,
        suggestions: Iterable[Suggestion] = (),
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self._reason = reason
        self.message = message
        self.text = text
        self.start = start
        self.end = max(end, start + 1)
        self.suggestions = (*suggestions,)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.text, self.start, self.end, self.suggestions, self.reason)

    def marked(self, width: int = 80) -> str:
        """The line of the text with a row of ^ under the part in question, cut to `width`."""
        line_start = self.text.rfind("\n", 0, self.start) + 1
        line_end = self.text.find("\n", line_start)
        line = self.text[line_start : line_end if line_end >= 0 else len(self.text)]
        left = self.start - line_start
        length = max(1, min(self.end - self.start, len(line) - left))
        before, part, after = (
            visible(x) for x in (line[:left], line[left : left + length], line[left + length :])
        )
        cut = max(0, len(before) - width // 2)
        space = len(before) - cut
        marks = "^" * min(max(1, len(part)), max(1, width - space))
        return f"{(before + part + after)[cut : cut + width]}\n{' ' * space}{marks}"


class UnknownName(TextError):
    """A name of a formula that the count has not; `meant` are the count's names of the same meaning."""

    def __init__(
        self,
        message: str,
        text: str,
        start: int,
        end: int,
        name: str,
        known: list[str],
        meant: list[str],
        reason: str = "",
    ) -> None:
        whole = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])")
        renamed = (Suggestion(0, len(text), whole.sub(one, text)) for one in meant)
        super().__init__(message, text, start, end, renamed, reason)
        self.name, self.known, self.meant = name, known, meant

    def __reduce__(self) -> tuple[object, ...]:
        place = (self.message, self.text, self.start, self.end)
        return type(self), (*place, self.name, self.known, self.meant, self.reason)


class NotAffineError(TextError):
    """A rule that isl cannot hold as an integer set; it can still be enumerated."""


class TraceError(LattendError):
    """A Python function that cannot be traced into a rule."""


class NamingError(LattendError):
    """A name that is unknown, given twice, or missing."""


class DomainError(LattendError):
    """A value outside the domain where a rule or a count is defined."""


class NoClosedForm(LattendError):
    """A count that has no closed form, or whose closed form cannot be found here; says why."""


class DeadlineError(NoClosedForm):
    """Set work that did not end within its budget of time and memory."""


class EngineMissing(NoClosedForm):
    """The counting engine (Barvinok, in islpy-barvinok) is not installed."""


class DerivationError(LattendError):
    """A line of a derivation that does not follow from the one before it."""


class TooLarge(LattendError):
    """More pairs than enumeration may visit."""


class TensorError(LattendError):
    """A tensor whose shape, dtype or device does not fit the call."""


class RankError(LattendError):
    """Ranks that disagree about a call, or one that did not answer; every rank is told the same."""


class ExtraMissing(LattendError, ImportError):
    """What was asked for needs a package that is not installed."""


class TorchMissing(ExtraMissing):
    """What was asked for runs on torch, which is not installed."""


class NoTable(LattendError, AttributeError):
    """A mask of a model that is a rule was used as a table of pairs; hasattr(mask, "dtype") is False."""


def first_cause(error: BaseException) -> BaseException:
    """The error that led to this one, through others or not."""
    while cause := error.__cause__ or error.__context__:
        error = cause
    return error
