"""Panel: a typed question, a typed answer, and the function of the library between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from lattend.errors import LattendError, NoClosedForm, NotAffineError, TextError, TooLarge

if TYPE_CHECKING:
    from lattend.draw import Picture

SECONDS = 5.0  # how long an answer may take
LONGEST_NUMBER = 60  # digits
TOO_LONG = f"a number has at most {LONGEST_NUMBER} digits"
MANY = 64  # numbers in one question
AROUND = 36  # characters shown around the place where a text is mended
RULES = ("rule", "other")  # the fields that hold the text of a rule


def _integer(value: object) -> object:
    """Read an integer that may be a text: JavaScript cannot write 10^30 as a number."""
    if isinstance(value, str):
        digits = value.strip().replace(",", "").replace("_", "")
        if len(digits) > LONGEST_NUMBER:
            raise ValueError(TOO_LONG)
        try:
            return int(digits)
        except ValueError:
            raise ValueError(f"{value!r} is not a whole number") from None
    return value


def _within_digits(value: int) -> int:
    if abs(value) >= 10**LONGEST_NUMBER:
        raise ValueError(TOO_LONG)
    return value


Integer = Annotated[
    int,
    BeforeValidator(_integer),
    AfterValidator(_within_digits),
    Field(json_schema_extra={"format": "digits"}),  # it may be a text of digits
]
Numbers = Annotated[dict[str, Integer], Field(max_length=MANY)]
"""Sizes and parameters by name; what is left out stays a letter."""
Text = Annotated[str, Field(max_length=200)]
"""A number as it is typed."""
Row = Annotated[list[Text], Field(max_length=24)]
Rows = Annotated[list[Row], Field(max_length=24)]


class Question(BaseModel):
    """The question of a panel. Its fields are fields of the page's state, which links carry."""

    model_config = ConfigDict(extra="forbid")


class Snippets(BaseModel):
    """The question as Python and as a command, and its answer as LaTeX."""

    python: str
    command: str
    latex: str = ""


class AnswerPart(BaseModel):
    """A part of an answer. Fields may be read off an object of the library, by their names."""

    @classmethod
    def view_of(cls, result: object, **more: Any) -> Self:
        """The view of a result; fields that it has not, or that are shown otherwise, are in `more`."""
        names = [name for name in cls.model_fields if name not in more and hasattr(result, name)]
        return cls.model_validate({name: getattr(result, name) for name in names} | more)


class Answer(AnswerPart):
    """The answer of a panel. `late`: a part of it took too long, and may be there the next time."""

    copies: Snippets
    late: bool = False


class Fix(BaseModel):
    """A corrected text."""

    label: str
    text: str


class Problem(BaseModel):
    """Why there is no answer: what was asked, what was found, where, and what to do.

    The kind "no formula" is of rules that have none at all, whichever of their formulas was asked for.
    `field` is the field of the question that the message speaks of, and `start` to `end` its characters.
    """

    kind: Literal["input", "no answer", "no formula", "busy", "mistake"]
    message: str
    field: str = ""
    text: str = ""
    start: int = 0
    end: int = 0
    fixes: list[Fix] = []


@dataclass(frozen=True)
class Panel:
    """One kind of question. `answer` and `picture` run in a worker; `torch` says whether they need it.

    `first` says that a keystroke waits for it: where many ask, it goes before the others, of all pages.
    `as_typed` says that the answer tells of a rule's spelling, and not of its pairs alone.
    """

    name: str
    title: str
    answer: Callable[[Any], BaseModel]
    picture: Callable[[Any], Picture] | None = None
    torch: bool = False
    first: bool = False
    as_typed: bool = False
    seconds: float = SECONDS

    @cached_property
    def question(self) -> type[Question]:
        """The type of the questions that `answer` takes."""
        return get_type_hints(self.answer)["question"]

    @cached_property
    def reply(self) -> type[BaseModel]:
        """The type of the answers that `answer` gives."""
        return get_type_hints(self.answer)["return"]


def problem_of(error: LattendError, question: Question) -> Problem:
    """The error as the page shows it, with the field whose text it points at."""
    problem = Problem(kind=_kind(error, question), message=error.reason)
    if not isinstance(error, TextError):
        return problem
    field = next((name for name, value in question if value == error.text), "")
    marked: dict[str, Any] = {"text": error.text, "start": error.start, "end": error.end, "field": field}
    message = error.reason if field else str(error)  # the page shows the text of a field itself
    return problem.model_copy(update={**marked, "message": message, "fixes": _fixes(error, field)})


def _kind(
    error: LattendError, question: Question
) -> Literal["input", "no answer", "no formula", "busy", "mistake"]:
    """The kind of a problem: whether the question is wrong or has no answer."""
    if isinstance(error, NotAffineError) or (isinstance(error, NoClosedForm) and _looks_up(question)):
        return "no formula"
    return "no answer" if isinstance(error, (NoClosedForm, TooLarge)) else "input"


def _looks_up(question: Question) -> bool:
    """Whether a rule of the question looks up data."""
    from lattend.web.rules import read

    texts = (getattr(question, name, "") for name in RULES)
    rules = [read(text) for text in texts if text]
    return any(rule.data or rule.open for rule in rules)


def _fixes(error: TextError, field: str) -> list[Fix]:
    """At most three corrected texts. Rules are repaired as a whole."""
    if not field or not error.suggestions:
        return []
    if field in RULES:
        from lattend.rules.typos import corrected

        texts = corrected(error)
    else:
        texts = [suggestion.applied(error.text) for suggestion in error.suggestions]
    return [Fix(label=_label(error, text), text=text) for text in texts[:3]]


def _label(error: TextError, text: str) -> str:
    """The text, or the corrected part of a long one."""
    if len(text) <= 2 * AROUND:
        return text
    first = max(0, error.start - AROUND)
    return f"{'…' if first else ''}{text[first : first + 2 * AROUND]}…"


def problem_of_question(errors: Sequence[Mapping[str, Any]]) -> Problem:
    """The first invalid field of a question."""
    first = errors[0]
    path = [str(part) for part in first.get("loc", ()) if part not in ("body", "[key]")]
    message = str(first.get("msg", "")).removeprefix("Value error, ")
    return Problem(
        kind="input",
        message=f"{'.'.join(path)}: {message}"[:400] if path else message[:400],
        field=path[0] if path else "",
    )
