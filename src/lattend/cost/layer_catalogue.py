"""Catalogue: every layer that lt.cost prices, with its arguments and an example."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from inspect import getdoc
from typing import Any

from lattend.cost.reader import arguments_of, layer_function, layer_names
from lattend.cost.recipe import TIED
from lattend.report.report import Printed, Report
from lattend.wording import many

EXAMPLES = {
    "attention": "attention(causal, n=t, heads=8, D_i=512, D_hid=64)",
    "conv": "conv(kernel=k, padding=same, c_in=d, c_out=d)",
    "patch_embedding": "patch_embedding(rows=224, cols=224, patch=16)",
    "gru": "gru(steps=t, inputs=n, hidden=n, bias=true)",
    "lstm": "lstm(steps=t, inputs=n, hidden=n)",
    "rnn": "rnn(steps=t, inputs=n, hidden=n, layers=l)",
    "rnn2d": "rnn2d(cell=lstm, directions=4)",
    "embedding": "embedding(n=512, vocabulary=50257, d=768)",
    "feed_forward": "feed_forward(d=512, hidden=2048, gated=true)",
    "linear": "linear(n=1, d_in=D, d_out=D, bias=false)",
    "norm": "norm(kind=rms)",
    "decoder": "decoder(n=1024, d=768, heads=12, layers=12, vocabulary=50257)",
    "encoder": "encoder(n=t, d=n, heads=1, layers=l)",
    "transformer_block": "l * transformer_block(causal, heads=1)",
    "vit": "vit(patch=32)",
    "vae": "vae(d=784, hidden=256, latent=2)",
}


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
        """What it prints."""
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
    return LayerEntry(name, about, arguments, EXAMPLES[name])


def _typed(value: Any) -> str:
    """As it is typed in a text: true, none, same."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
