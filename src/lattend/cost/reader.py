"""A cost from one string, `rnn(steps=t, hidden=512)`, and the catalogue of layers that have a price."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from inspect import getdoc
from pathlib import Path
from typing import Any, cast

from lattend import cost
from lattend.cost.cost import Cost
from lattend.cost.sizes import TIED, SizeArgument, check_letters, read_size, repeats, size_arguments
from lattend.errors import DomainError, LattendError, NamingError, NoClosedForm, TextError, TooLarge
from lattend.report.report import Printed, Report
from lattend.rules.language.call import Call, parts, read_call, read_value, read_word
from lattend.rules.language.expr import Span
from lattend.rules.language.grammar import Source
from lattend.rules.reader import read_rule
from lattend.rules.rule import Rule
from lattend.wording import close_names, many

EXAMPLE = "rnn(steps=t, hidden=512)"
WORDS = ("rule", "kind", "norms", "encoding", "projections", "name", "cell")  # arguments that are no sizes
PASSES_ON = {"encoder": "transformer_block", "decoder": "transformer_block"}  # what **options are for
LAYERS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("layers").joinpath("layers.toml").read_text(encoding="utf-8")
)
MEANT = {called: name for name, layer in LAYERS.items() for called in layer.get("called", ())}


def layer_names() -> list[str]:
    """The layers that lt.cost prices, by name."""
    return [name for name, home in vars(cost)["_HOME"].items() if home.startswith("lattend.cost.layers.")]


def from_text(text: str, numbers: Mapping[str, Any] | None = None) -> Cost:
    """The cost a person means: `rnn2d`, `rnn(steps=t)`, `attention(causal, n=t) + 2 * feed_forward(n=t)`.

    `numbers` are numbers for symbols, and arguments that the text does not give.

    >>> from_text("rnn(steps=t, inputs=n, hidden=n)").multiplies
    2n^2*t
    >>> from_text("rnn(steps=t, inputs=n, hidden=n)", {"n": 8, "t": 2}).multiplies  # 2*8^2*2
    256
    """
    return _Reading(Source("layer", text), numbers or {}).whole()


class _Reading:
    """A text on its way to a cost, and which of the given names have found their place."""

    def __init__(self, source: Source, numbers: Mapping[str, Any]) -> None:
        self.source, self.text, self.given = source, source.text, numbers
        self.used: set[str] = set()
        self.sizes: list[SizeArgument] = []  # of all layers, before numbers are put in

    def whole(self) -> Cost:
        self.source.check_length()
        spans = list(parts(self.source, 0, len(self.text), "+"))
        if not spans:
            message = f"write a layer, as in {EXAMPLE}; there are {', '.join(layer_names())}"
            raise self.source.error(message, 0, len(self.text))
        cost = self.term(*spans[0])
        for span in spans[1:]:
            cost = cost + self.term(*span)
        if len(spans) > 1:
            cost = cost.named(" ".join(self.text.split()))
        rest = {name: value for name, value in self.given.items() if name not in self.used}
        for name in rest:
            if name in WORDS:
                raise NamingError(f"{cost.name} has a {name} already, or takes none; leave it out")
        return cost.at(**rest) if rest else cost

    def term(self, start: int, end: int) -> Cost:
        """One layer, and beside it how many of them: `12 * transformer_block(d=768)`, `rnn(steps=t) * l`."""
        spans = list(parts(self.source, start, end, "*"))
        if not spans or not all(self.text[first:last].strip() for first, last in spans):
            raise self.source.error(f"a layer is missing here; write one as in {EXAMPLE}", start, end)
        layers = [span for span in spans if self.is_layer(*span)]
        if len(layers) > 1:
            raise self.source.error("layers follow each other with +, as in rnn + linear", *layers[1])
        chosen = layers[0] if layers else max(spans, key=lambda span: span[1] - span[0])
        cost = self.layer(*chosen)
        for first, last in (span for span in spans if span != chosen):
            factor = read_value(self.source, first, last)
            self.add_sizes(repeats(factor), (first, last))
            times = self.number(factor)
            cost = self.pointing((first, last), partial(cost.repeat, times))
        return cost

    def is_layer(self, start: int, end: int) -> bool:
        """Whether a factor is a layer, and not how many there are of one."""
        call = read_call(self.source, start, end)
        return call is not None and (call.name in layer_names() or call.arguments is not None)

    def layer(self, start: int, end: int) -> Cost:
        call = read_call(self.source, start, end)
        if call is None:
            name = "_".join(self.text[start:end].lower().replace("-", " ").split())
            meant = MEANT.get(name, name if name in layer_names() else None)
            hint = f"did you mean {meant}? Else write it" if meant else "write it"
            change = (meant,) if meant else ()
            raise self.source.error(f"this is no layer; {hint} as in {EXAMPLE}", start, end, *change)
        name = call.name
        if name not in layer_names():
            meant = _meant(name, [*layer_names(), *MEANT])
            hint = f" Did you mean {meant[0]}?" if meant else ""
            known = f"no layer is named {name}; there are {', '.join(layer_names())}.{hint}"
            raise self.source.error(known, *call.place, *meant)
        wanted = _wanted(name)
        said, places = _arguments(self.source, call, wanted)
        for word in WORDS:
            if word in self.given and word in wanted and word not in said:
                said[word] = self.given[word]
                self.used.add(word)
        for word, default in wanted.items():  # letters count as written; numbers are put in later
            letters = [self.given.get(at) for at in (word, default) if isinstance(at, str)]
            letter = next((letter for letter in letters if isinstance(letter, str)), None)
            if word not in WORDS and word not in said and letter is not None:
                said[word] = letter
                self.used |= {word, default} & {*self.given}
        rule = said.get("rule")
        if rule is not None and not isinstance(rule, Rule):
            said["rule"] = self.pointing(places.get("rule", call.place), partial(read_rule, rule))
        symbols = _symbols(name, wanted, said.get("rule"))
        arguments: dict[str, Any] = {}
        for word, value in said.items():
            place = places.get(word, call.place)
            if word not in symbols:
                message = f"{name} has no {word}; it takes {', '.join(symbols)}"
                raise self.source.error(message, *place, *_meant(word, [*symbols]))
            self.check(f"{word} of {name}", value, symbols[word], place)
            arguments[word] = value
            if word not in WORDS:
                lead = f"{word} of {name}: "
                arguments[word] = self.pointing(place, partial(self.number, value), lead)
        self.add_sizes(size_arguments(name, {**symbols, **said}, said), (start, end))
        for word, default in symbols.items():
            arguments |= self.open(word, default) if word not in said and word not in WORDS else {}
        return self.pointing((start, end), partial(layer_function(name), **arguments), f"{name}: ")

    def add_sizes(self, sizes: list[SizeArgument], place: Span) -> None:
        """Note sizes as they are written, and raise where a letter would mean two kinds of size."""
        self.sizes += sizes
        self.pointing(place, partial(check_letters, self.sizes))

    def open(self, name: str, default: Any) -> dict[str, Any]:
        """A number for an argument that the text leaves open, given under its name or its symbol's."""
        for symbol in (name, default):
            if isinstance(symbol, str) and symbol in self.given:
                self.used.add(symbol)
                return {name: self.given[symbol]}
        return {}

    def number(self, value: Any) -> Any:
        """A size with numbers put in for its symbols, once all of them have one."""
        if isinstance(value, tuple):
            return tuple(self.number(part) for part in cast("tuple[Any, ...]", value))
        if not isinstance(value, str):
            return value
        size = read_size("a size", value, parts=True)
        names = sorted(name for name in size.atoms if isinstance(name, str))
        if not names or not all(isinstance(self.given.get(name), int) for name in names):
            return value
        self.used |= set(names)
        number = size.at({name: self.given[name] for name in names}).terms.get((), 0)
        if number != int(number):
            numbers = ", ".join(f"{name} = {self.given[name]}" for name in names)
            raise DomainError(f"{value} is {number} at {numbers}, and no whole number")
        return int(number)

    def check(self, what: str, value: Any, default: Any, place: Span) -> None:
        """Raise where a switch is given a size, or a size is given a switch."""
        is_switch = isinstance(default, bool)
        if is_switch != isinstance(value, bool):
            shown = "true or false" if is_switch else "a number, a name or a formula"
            raise self.source.error(f"{what} is {shown}, not {str(value).lower()}", *place)

    def pointing(self, place: Span, work: Callable[[], Any], lead: str = "") -> Any:
        """The result of the work; its errors point at these characters."""
        try:
            return work()
        except (NoClosedForm, TooLarge):
            raise
        except LattendError as problem:
            if isinstance(problem, TextError) and problem.text != self.text and "rule" in self.given:
                raise  # it points into the rule, which is no part of this text
            raise self.source.error(f"{lead}{problem}", *place) from None


def _meant(name: str, known: list[str]) -> list[str]:
    """The name that was meant, by other names of layers or by its letters, if there is one."""
    close = close_names(name.lower(), known, 0.6)
    return [MEANT.get(word, word) for word in close]


def layer_function(name: str) -> Callable[..., Cost]:
    """The function of lt.cost that prices a layer."""
    return getattr(import_module(vars(cost)["_HOME"][name]), name)


def arguments_of(name: str) -> dict[str, Any]:
    """The arguments of a layer with their defaults, the sizes of its default rule among them."""
    return _symbols(name, _wanted(name), None)


def _wanted(name: str) -> dict[str, Any]:
    """The arguments of a layer, and of the layer it passes others on to, with their defaults."""
    parameters = inspect.signature(layer_function(name)).parameters
    defaults = {word: p.default for word, p in parameters.items() if p.kind != p.VAR_KEYWORD}
    return {**defaults, **_wanted(PASSES_ON[name]), **defaults} if name in PASSES_ON else defaults


def _symbols(name: str, wanted: Mapping[str, Any], rule: Any) -> dict[str, Any]:
    """All arguments with their defaults, sizes and parameters of the rule among them."""
    if "rule" not in wanted:
        return dict(wanted)
    chosen = rule if isinstance(rule, Rule) else read_rule(str(wanted["rule"]))
    sizes = [*chosen.sizes, *(["m"] if name == "attention" and "n" in chosen.sizes else [])]
    more = {word: word for word in (*sizes, *chosen.parameters) if word not in chosen.values and word != "m"}
    return {**wanted, **more, **({"m": None} if "m" in sizes else {})}


def _arguments(
    source: Source, call: Call, wanted: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Span]]:
    """The arguments by name, and where each stands; the first may be a rule without its name."""
    values: dict[str, Any] = {}
    places: dict[str, Span] = {}
    for argument in call.arguments or ():
        name = argument.name or ("rule" if "rule" in wanted and not values else None)
        if name is None:
            message = f"write arguments of {call.name} as name=value; it takes {', '.join(wanted)}"
            raise source.error(message, *argument.place)
        if name in values:
            raise source.error(f"{name} is given twice; give it once", *argument.place)
        places[name] = argument.place
        values[name] = (read_word if name == "rule" else read_value)(source, *argument.value)
    return values, places


@dataclass(frozen=True)
class LayerEntry:
    """A layer by name: what it is, its arguments with what they are if not given, and an example."""

    name: str
    about: str
    arguments: dict[str, Any]
    example: str

    @property
    def signature(self) -> str:
        """`steps=t, inputs=c, hidden=h, layers=1`; a size that stands for itself has its name alone."""
        usual = {name: TIED.get(name) if value is None else value for name, value in self.arguments.items()}
        return ", ".join(
            name if name == value else f"{name}={_typed(value)}" for name, value in usual.items()
        )


@dataclass(frozen=True, repr=False)
class Catalogue(Printed):
    """The layers by name; printed, each with its arguments and an example."""

    entries: dict[str, LayerEntry]

    def __getitem__(self, name: str) -> LayerEntry:
        return self.entries[name]

    def report(self) -> Report:
        """The printed report."""
        parts: list[str] = []
        for entry in self.entries.values():
            parts += ["", f"{entry.name}: {entry.about}", f"  {entry.signature}"]
            parts.append(f'  lattend cost "{entry.example}"')
        rest = [
            "",
            "A size is a number, a name or a formula, d=512, d=n, hidden=4*d. Layers add and repeat: "
            '"l * attention(n=t) + linear(n=t)". --at gives numbers, --rule the attention mask.',
        ]
        return Report(f"{many(len(self.entries), 'layer')}, their arguments and an example", [*parts, *rest])

    def json(self) -> dict[str, Any]:
        """The same as plain data."""
        return {name: asdict(entry) for name, entry in self.entries.items()}

    def __repr__(self) -> str:
        return f"<Catalogue of {many(len(self.entries), 'layer')}: {', '.join(self.entries)}>"


def catalogue() -> Catalogue:
    """Every layer that is priced, with its arguments and an example.

    >>> catalogue()["rnn"].signature
    'steps=t, inputs=c, hidden=h, layers=1, bias=false, initial=true'
    """
    return Catalogue({name: _entry(name) for name in layer_names()})


def _entry(name: str) -> LayerEntry:
    about = (getdoc(layer_function(name)) or "").partition("\n")[0]
    arguments = {word: value for word, value in arguments_of(name).items() if word != "name"}
    return LayerEntry(name, about, arguments, LAYERS[name]["example"])


def _typed(value: Any) -> str:
    """A value as it is typed in a text: true, none, same."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
