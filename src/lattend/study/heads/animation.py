"""animate: the moments of a record one after another, as a GIF, or as a page with a slider."""

from __future__ import annotations

import json
import os
from html import escape
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from lattend.errors import LattendError
from lattend.nn.pictures.heads import COLOURS
from lattend.study.heads.pictures import draw_moment, reach

if TYPE_CHECKING:
    from lattend.study.heads.record import Record

ENDINGS = (".gif", ".html")
FRAME, LAST = 350, 2500  # milliseconds that a frame and the last one are seen
SCALE = 1.0  # pixels a unit of the picture


def animate(record: Record, path: str | os.PathLike[str], run: str) -> Path:
    """Writes the form that the ending names, and gives the path."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise LattendError(f'cannot animate as "{path}": the ending is not one of {", ".join(ENDINGS)}')
    if not path.parent.is_dir():
        raise LattendError(f'cannot save "{path}": there is no folder "{path.parent}"; make it first')
    path.write_bytes(gif(record, run) if ending == ".gif" else page(record, run).encode())
    return path


def gif(record: Record, run: str) -> bytes:
    """A frame for each moment, in one palette."""
    from PIL import Image

    pictures = [draw_moment(record, moment.epoch, run) for moment in record.run(run).moments]
    frames = [Image.open(BytesIO(picture.png(SCALE))).convert("RGB") for picture in pictures]
    last = frames[-1].quantize(128)
    first, *others = [frame.quantize(palette=last, dither=Image.Dither.NONE) for frame in frames]
    content = BytesIO()
    seen = [FRAME] * len(others) + [LAST]
    first.save(content, "GIF", save_all=True, append_images=others, duration=seen, loop=0, optimize=True)
    return content.getvalue()


def page(record: Record, run: str) -> str:
    """One HTML file that needs nothing else, with this run shown first."""
    record.run(run)
    names = sorted(record.runs, key=lambda name: name != run)
    moments = {name: [moment.json() for moment in record.runs[name].moments] for name in names}
    template = Template(files("lattend.study.heads").joinpath("animation.html").read_text(encoding="utf-8"))
    return template.safe_substitute(
        title=escape(f"Heads in training on {record.settings.data}"),
        record=json.dumps(moments).replace("</", "<\\/"),
        reach=reach(record),
        colours=json.dumps(COLOURS),
    )
