"""Fields: what a config.json says, read one name at a time; what is missing or odd is named with its file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from lattend.errors import LattendError, NamingError


class Configuration(Protocol):
    """A configuration object, such as those of transformers."""

    def to_dict(self) -> dict[str, Any]: ...


Source = str | Path | Mapping[str, Any] | Configuration
INSIDE = {"gemma3": "gemma3_text", "llama4": "llama4_text"}  # models whose text part is nested
GIVE = "give a config.json, a folder with one, a dict, or a configuration of transformers"
MISSING = object()
MOST_LAYERS = 10_000
LARGEST = 10**15  # of any number: products of some of them still have a float
LONGEST = 60  # characters of a value in a message


class Fields:
    """The fields of one config, and which of them were asked for."""

    def __init__(
        self, data: Mapping[str, Any], where: str, overrides: Mapping[str, Any], notes: Sequence[str] = ()
    ):
        self.data = {**data, **overrides}
        self.where = where
        self.overrides = overrides
        self.asked: set[str] = {"model_type", "architectures"}
        self.defaults: dict[str, int] = {}
        self.notes = list(notes)
        self.inside: str | None = None  # the model that this is the text part of

    @property
    def family(self) -> str:
        family = self.data.get("model_type")
        if not isinstance(family, str):
            message = f'{self.where} has no "model_type", so its family is not known; add it'
            error = LattendError(f'{message}, or give config(…, model_type="llama")')
            raise error.with_reason(f'{message}, as in "model_type": "llama"')
        return family

    @property
    def architecture(self) -> str | None:
        """The class the weights are of, such as `LlamaForCausalLM`."""
        named: list[str] = self.list_of("architectures", str) or []
        return named[0] if named else None

    def get(self, *names: str) -> Any:
        """The value under the first of these names that is there, or MISSING."""
        self.asked.update(names)
        return next((self.data[name] for name in names if name in self.data), MISSING)

    def size(self, *names: str, least: int = 1, most: int = LARGEST, what: str = "whole number") -> int:
        """A whole number that must be there."""
        value = self.get(*names)
        if value is MISSING or value is None:
            message = f'{self.where} has no "{names[0]}", which {self.family} needs; add it'
            raise NamingError(f"{message}, or give config(…, {names[0]}=…)").with_reason(message)
        return self._integer(names[0], value, least, most, what)

    def layers(self, *names: str) -> int:
        """How many layers there are, which must be there; so many that no model has them are refused."""
        return self.size(*names, most=MOST_LAYERS, what="number of layers")

    def optional(self, *names: str, least: int = 1) -> int | None:
        """A whole number, or None where it is missing or null."""
        value = self.get(*names)
        return None if value is MISSING or value is None else self._integer(names[0], value, least)

    def window(self, name: str, usual: int | None) -> int | None:
        """A number that null turns off; where it is missing, the usual one, which is noted."""
        if self.get(name) is MISSING and usual is not None:
            self.defaults[name] = usual
            return usual
        return self.optional(name, least=0) or None

    def usual(self, value: int, *names: str) -> int:
        """A whole number; where it is missing or null, the usual one, which is noted."""
        number = self.optional(*names, least=0)
        if number is None:
            self.defaults[names[0]] = number = value
        return number

    def flag(self, name: str, usual: bool) -> bool:
        """A yes or no; the usual one where it is missing or null."""
        value = self.get(name)
        if value is MISSING or value is None:
            return usual
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false", value)
        return value

    def list_of(self, name: str, kind: type, usual: list[Any] | None = None) -> list[Any] | None:
        """A list of texts or whole numbers; the usual one where it is missing or null."""
        value = self.get(name)
        if value is MISSING or value is None:
            return usual
        if not isinstance(value, (list, tuple)) or {type(one) for one in cast("list[Any]", value)} - {kind}:
            wanted = f"a list of {'texts' if kind is str else 'whole numbers'}"
            raise self.wrong(name, wanted, cast("object", value))
        return list(cast("list[Any]", value))

    def pair(self, name: str, usual: int) -> tuple[int, int]:
        """A whole number or two: rows and columns."""
        value = self.get(name)
        if value is MISSING or value is None:
            self.defaults[name] = usual
            return usual, usual
        both = cast("list[Any]", value) if isinstance(value, (list, tuple)) else [value, value]
        if len(both) != 2:
            raise self.wrong(name, "a whole number or two", both)
        return self._integer(name, both[0], 1), self._integer(name, both[1], 1)

    def refuse(self, name: str, why: str) -> None:
        """Raises where a field is on that changes the model in a way that is not counted."""
        value = self.get(name)
        if value is not MISSING and value:
            raise LattendError(f"{self.where} has {name} = {value!r}: {why}")

    def labels(self) -> int:
        """How many classes: id2label, or num_labels, or the usual two."""
        named = self.get("id2label")
        labels = self.optional("num_labels")
        if isinstance(named, Mapping) and "num_labels" not in self.overrides:
            return len(cast("Mapping[str, str]", named))
        return labels if labels is not None else self.usual(2, "num_labels")

    def wrong(self, name: str, wanted: str, value: object) -> LattendError:
        text = repr(value)
        got = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
        return LattendError(f'"{name}" of {self.where} must be {wanted}, got {got}')

    def read_ones(self) -> dict[str, Any]:
        """The fields that were asked for and are there; labels only by their number."""
        fields = {name: value for name, value in self.data.items() if name in self.asked}
        if isinstance(fields.get("id2label"), Mapping):
            fields["num_labels"] = len(fields.pop("id2label"))
        return fields if self.inside is None else {"model_type": self.inside, "text_config": fields}

    def check_overrides(self) -> None:
        """Raises for an override that no part of the model asked for."""
        unread = [name for name in self.overrides if name not in self.asked]
        if unread:
            raise NamingError(
                f"{self.family} has no field {' or '.join(unread)}; it reads {', '.join(sorted(self.asked))}"
            )

    def _integer(
        self, name: str, value: object, least: int, most: int = LARGEST, what: str = "whole number"
    ) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.wrong(name, f"a whole number of at least {least}", value)
        if value > most:
            raise self.wrong(name, f"a {what} up to {most:,}", value)
        return value


def read(source: Source, overrides: Mapping[str, Any]) -> Fields:
    """The fields of a config.json, of a folder with one, or of a dict; of the text part, if it is nested."""
    data, where = _loaded(source)
    family = overrides.get("model_type", data.get("model_type"))
    if not isinstance(family, str) or family not in INSIDE:
        return Fields(data, where, overrides)
    nested = data.get("text_config")
    if not isinstance(nested, Mapping):
        raise LattendError(f'{where} has no "text_config", which {family} needs')
    inner: dict[str, Any] = (
        {"tie_word_embeddings": data["tie_word_embeddings"]} if "tie_word_embeddings" in data else {}
    )
    inner |= cast("Mapping[str, Any]", nested)
    inner |= {"model_type": INSIDE[family], "architectures": None}
    note = f"the text part of {family}; its image part is not counted"
    others = {name: value for name, value in overrides.items() if name != "model_type"}
    fields = Fields(inner, f"{where} (text_config)", others, [note])
    fields.inside = family
    return fields


def _object_fields(source: Any) -> tuple[Mapping[str, Any], str]:
    """The fields of a configuration of transformers, or of a model that has one."""
    made = getattr(source, "config", source)
    if not callable(getattr(made, "to_dict", None)):
        raise LattendError(f"{GIVE}, not {type(source).__name__}")
    head = {} if made is source else {"architectures": [type(source).__name__]}
    return {**made.to_dict(), **head}, type(made).__name__


def _loaded(source: Source) -> tuple[Mapping[str, Any], str]:
    if isinstance(source, Mapping):
        return source, "the config"
    if not isinstance(source, (str, Path)):
        return _object_fields(source)
    path = Path(source)
    inside = path.is_dir()
    path = path / "config.json" if inside else path
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        problem = f"the folder {path.parent} holds no config.json" if inside else f"there is no {path}"
        looked_up = (
            "" if path.suffix == ".json" else f"; of a name: AutoConfig.from_pretrained({str(source)!r})"
        )
        raise LattendError(f"{problem}; {GIVE}{'' if inside else looked_up}") from None
    except OSError as reason:
        raise LattendError(f"{path} cannot be read: {reason.strerror}") from None
    except ValueError as reason:
        raise LattendError(f"{path} is not JSON: {reason}") from None
    except RecursionError:
        raise LattendError(f"{path} has too many brackets inside one another") from None
    if not isinstance(data, dict):
        raise LattendError(f"{path} holds {type(data).__name__}, not the fields of a model")
    return cast("dict[str, Any]", data), str(path)
