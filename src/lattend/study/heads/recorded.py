"""digits_record: heads in training on handwritten digits, recorded: digits.json is in the package.

It was made by `lattend heads train --seed 0`, in a minute or two on one core.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from lattend.study.heads.record import Record


@lru_cache(maxsize=1)
def digits_record() -> Record:
    """Four layers of nine heads over 25 epochs, beside a control whose centres are held fixed.

    >>> digits_record().settings.data
    'digits'
    """
    return Record.of(files("lattend.study.heads").joinpath("digits.json").read_text(encoding="utf-8"))
