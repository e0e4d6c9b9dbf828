"""lattend cost config.json: a model's parameters and work, and what it takes to serve."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from lattend.cli.output import check_out, say, say_json, width
from lattend.errors import LattendError, TextError
from lattend.report.numbers import format_bytes

if TYPE_CHECKING:
    from lattend.cli.cost import CostCommand
    from lattend.cost.models import Model, ModelWork, Serving

SERVING = ("machine", "machines", "weights", "cache", "layers", "rule", "out")
_PART = re.compile(r" *(\d+)(?: *- *(\d+)(?: *: *(\d+))?)? *")
_PATH = re.compile(r"[^()=*+\s]*/[^()=*+\s]*")


def is_model(text: str) -> bool:
    """Whether the text is a file or a folder rather than a layer; raises for a path that does not exist."""
    from lattend.cost.reader import layer_names

    path = Path(text)
    try:
        if text.endswith(".json") or path.is_file() or (path / "config.json").is_file():
            return True
        if path.is_dir():
            return text not in layer_names()
    except OSError:  # too long for a path
        return False
    if _PATH.fullmatch(text):
        raise _not_there(text)
    return False


def _not_there(text: str) -> LattendError:
    message = f'there is no file or folder "{text}" here, and models are not looked up elsewhere'
    if Path(text).is_dir():
        message = f'the folder "{text}" holds no config.json'
    return LattendError(f"{message}; give the path of a config.json, or of the folder that holds it")


def price_model(path: str, options: CostCommand) -> None:
    """Print the model, its work at a length, or its serving, as the options ask."""
    from lattend.cost.models import config, serving
    from lattend.cost.models.encoder_decoder import EncoderDecoder

    for alone in ("training", "formulas"):
        if getattr(options, alone):
            options.refuse(
                SERVING, f"is about serving and does not go with --{alone}; ask for one of the two"
            )
    check_out(options.out)
    if not (Path(path).is_file() or Path(path, "config.json").is_file()):
        raise _not_there(path)
    model = config(path)
    is_served = any(getattr(options, name) is not None for name in SERVING)
    served = None
    pair = isinstance(model, EncoderDecoder)
    if options.encoder_length and not pair:
        raise LattendError(
            f"--encoder-length is for an encoder with a decoder; {model.family} has --length alone"
        )
    if not options.training and not options.formulas and (is_served or not pair):
        served = serving(
            model,
            options.length,
            batch=options.batch or 1,
            machine=options.machine or "H100",
            machines=options.machines or 1,
            weights=options.weights or "bf16",
            cache=options.cache or "bf16",
            rule=options.rule,
            layers=_read_layers(options.layers, options.rule),
        )
    if is_served and served is not None:
        _say_serving(served, options.out, options.json)
    else:
        _say_model(model, options, served)


def _say_serving(serving: Serving, out: str | None, json: bool) -> None:
    picture = None if out is None else serving.draw()
    file = None if picture is None or out is None else str(picture.save(out))
    if json:
        say_json({**serving.json(), **({"file": file} if file else {})})
        return
    say(serving.text(width()))
    if picture is not None:
        say(f"\n{file}: {picture.title}")


def _say_model(model: Model, options: CostCommand, serving: Serving | None) -> None:
    from lattend.cost.models.encoder_decoder import EncoderDecoder

    training, length, batch = options.training, options.length, options.batch
    runs = length is not None or batch is not None or training or model.image is not None
    work = _work(model, options) if runs else None
    held = None if length is None or not model.is_causal else model.cache(length, batch or 1)
    crossed = None
    if work is not None and isinstance(model, EncoderDecoder):
        crossed = model.cross_cache(model.encoder_length(work.length, options.encoder_length), batch or 1)
    formulas = model.formulas(training=training) if options.formulas else None
    if options.json:
        run = {"training" if training else "forward": work.json()} if work is not None else {}
        run |= {} if work is None else {"length": work.length, "cache": held}
        run |= {} if crossed is None else {"cross_cache": crossed}
        say_json({**model.json(), **run, **({"serving": serving.json()} if serving else {})})
        return
    say(model.text(width()))
    if work is not None:
        say(f"\n{work.text(width())}")
    if held is not None and serving is None:
        more = "" if crossed is None else f"; of the cross-attention: {format_bytes(crossed)}"
        say(f"\nKV cache: {format_bytes(held)}{more}, at 2 bytes a number")
    if formulas is not None:
        say(f"\n{formulas.text(width())}")
    if serving is not None:
        say(f"\n{serving.text(width())}")


def _work(model: Model, options: CostCommand) -> ModelWork:
    """One run, forward or both ways."""
    from lattend.cost.models.encoder_decoder import EncoderDecoder

    how = {"length": options.length, "batch": options.batch or 1}
    if isinstance(model, EncoderDecoder):
        how["encoder_length"] = options.encoder_length
    return (model.training if options.training else model.forward)(**how)


def _read_layers(text: str | None, rule: str | None) -> list[int] | None:
    """`0-5,10` as numbers of layers, `0-31:2` as every second one."""
    if text is None:
        return None
    if rule is None:
        raise LattendError("--layers says in which layers a rule is: give --rule too")
    layers: list[int] = []
    offset = 0
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if match is None or match[3] == "0":
            raise TextError(
                "--layers are numbers from 0, as in 0-5,10 or 0-31:2", text, offset, offset + len(part)
            )
        first, last = int(match[1]), int(match[2] or match[1])
        layers += range(first, last + 1, int(match[3] or 1))
        offset += len(part) + 1
    return layers
