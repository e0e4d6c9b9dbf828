"""Heads in training: where they go while a network learns; public as `lt.study.heads`.

A small network of attention layers with the quadratic encoding learns to classify images, and the centre and
the width of every head are recorded by layer and epoch, beside a control whose random centres are held fixed.

Experiment  train, which gives a Record: it has .draw(epoch), .draw_paths(), .draw_spread(), .animate(path);
            compare_records of several seeds
Grids       grid_distance, fit_grid: how near heads come to the taps of a K × K kernel
Parts       HeadNet, read_images

`help(lt.study.heads.train)` tells the arguments of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lattend.lazy import homes, on_first_use

if TYPE_CHECKING:
    from lattend.study.heads.findings import compare_records as compare_records
    from lattend.study.heads.findings import fit_grid as fit_grid
    from lattend.study.heads.findings import grid_distance as grid_distance
    from lattend.study.heads.record import Record as Record
    from lattend.study.heads.training import HeadNet as HeadNet
    from lattend.study.heads.training import train as train
    from lattend.study.image_sets import read_images as read_images

# Where each name lives, loaded when it is first used
_HOME = homes(
    "lattend.study.heads",
    {
        "training": "train HeadNet",
        "record": "Record",
        "findings": "compare_records grid_distance fit_grid",
    },
) | {"read_images": "lattend.study.image_sets"}

__getattr__, __dir__ = on_first_use(globals(), "lt.study.heads", _HOME)
