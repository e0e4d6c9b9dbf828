"""Tokens, matrices and answers from files: JSON, CSV, NumPy's .npy and .npz, or a folder of them."""

from __future__ import annotations

import csv
import json
import os
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lattend.cli.arguments import comma_parts, space_parts
from lattend.errors import DomainError, LattendError, NamingError, TextError

MATRICES = ("tokens", "wq", "wk", "wv", "wo", "memory", "q", "k", "v")
OPTIONS = ("rule", "scale", "heads", "columns")
ENDINGS = (".json", ".csv", ".npy", ".npz")
MOST_DIGITS = 4000
_DECIMAL_COMMA = re.compile(r"\d,0+$")  # JSON reads no further: a number does not begin with 0
EXAMPLE = '{"tokens": [[1, 2], [2, 0]], "wq": …, "wk": …, "wv": …}'


def read_case(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a file or a folder for `work`: matrices by name, and rule, scale, heads and sizes if any.

    JSON and .npz hold everything by name; a folder has a file for each matrix, such as tokens.csv and wq.npy.
    """
    path = Path(path)
    if path.is_dir():
        return _folder(path)
    _must_be(path, (".json", ".npz"))
    if path.suffix.lower() == ".npz":
        return _named(path, _arrays(path))
    data = read_json(path)
    if not isinstance(data, Mapping):
        raise NamingError(f'"{path}" holds a {type(data).__name__}; write {EXAMPLE}')
    return _named(path, data)


def read_matrix(name: str, source: str, check: Callable[[str], object]) -> Any:
    """Read the matrix --name from a file or from text such as "1,0;0,1"; `check` raises if not a number.

    >>> read_matrix("wq", "1,0; 0,0.5", float), read_matrix("wq", "1 0; 0 0.5", float)
    ([['1', '0'], ['0', '0.5']], [['1', '0'], ['0', '0.5']])
    """
    if Path(source).suffix.lower() in ENDINGS or os.path.isfile(source):  # noqa: PTH113 (takes any text)
        _must_be(Path(source), ENDINGS, f"--{name}: ")
        return _read(name, Path(source))
    parts = space_parts if _has_spaces_between(source, check) else comma_parts
    rows: list[list[str]] = []
    offset = 0
    for part in source.split(";"):
        cells = [(cell, offset + start, offset + end) for cell, start, end in parts(part)]
        rows.append([_checked(name, *cell, source, check) for cell in cells])
        if len(rows[-1]) != len(rows[0]):
            message = f"--{name} has {len(rows[0])} numbers in its first row and {len(rows[-1])} in this one"
            raise TextError(f"{message}; give as many in each", source, offset, offset + len(part))
        offset += len(part) + 1
    return rows


def _has_spaces_between(text: str, check: Callable[[str], object]) -> bool:
    """Whether spaces separate the numbers: there is no comma, and all words are numbers."""
    if "," in text:
        return False
    try:
        for part in text.split(";"):
            for cell in part.split() or [""]:
                check(cell)
    except DomainError:
        return False
    return True


def _checked(name: str, cell: str, start: int, end: int, text: str, check: Callable[[str], object]) -> str:
    try:
        check(cell)
    except DomainError as error:
        message = f"--{name}: {error}" if cell else f"--{name}: a number is missing"
        if len(cell.split()) > 1 and _has_spaces_between(cell, check):
            message += "; put commas between all numbers of a row or spaces, not both"
        files = f"files end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"
        raise TextError(f"{message}; {files}", text, start, end) from None
    return cell


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read JSON, with numbers as they are written, so that 0.1050 keeps four decimals."""
    path = Path(path)
    _must_be(path, (".json",))
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise LattendError(f'cannot read "{path}": {error}') from None
    try:
        return json.loads(text, parse_float=str, parse_int=_whole, parse_constant=str)
    except RecursionError:
        raise LattendError(f'"{path}" has too many brackets inside one another') from None
    except DomainError as error:
        raise DomainError(f'"{path}": {error}') from None
    except json.JSONDecodeError as error:
        offset = max(0, min(error.pos, len(text.rstrip()) - 1))  # an end that comes too soon is shown too
        message = f'"{path}" is no JSON: {error.msg}, line {error.lineno}'
        if _DECIMAL_COMMA.search(text[:offset]):
            message += '; decimals behind a comma need quotes, as in "0,0142"'
        raise TextError(message, text, offset, offset + 1) from None


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        message = f"{text[:12]}… has {len(text):,} digits"
        raise DomainError(f"{message}; a whole number has at most {MOST_DIGITS:,}")
    return int(text)


def _must_be(path: Path, endings: tuple[str, ...], option: str = "") -> None:
    if path.suffix.lower() not in endings:
        raise LattendError(f'{option}cannot read "{path}": the ending is not one of {", ".join(endings)}')
    if not path.is_file():
        raise LattendError(f'{option}there is no file "{path}"')


def _named(path: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """The parts under the names of `work`: W_q and Wq become wq."""
    known = (*MATRICES, *OPTIONS)
    arrays: dict[str, Any] = {}
    for key, value in data.items():
        plain = key.lower().replace("_", "")
        name = plain if plain in known else key
        if name in arrays:
            raise NamingError(f'"{path}" gives {name} twice')
        arrays[name] = value
    if not {"tokens", "q"} & {*arrays}:
        has = ", ".join(data) or "nothing"
        raise NamingError(f'"{path}" has no tokens; it has {has}. Write {EXAMPLE}')
    if "heads" in arrays:
        heads = str(arrays["heads"])
        arrays["heads"] = _whole(heads) if heads.isdigit() else arrays["heads"]
    if "rule" in arrays:
        arrays["rule"] = str(arrays["rule"])
    return arrays


def _folder(path: Path) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for name in MATRICES:
        files = [path / f"{name}{ending}" for ending in ENDINGS if (path / f"{name}{ending}").is_file()]
        if len(files) > 1:
            raise NamingError(f'"{path}" has {files[0].name} and {files[1].name}; leave one')
        if files:
            arrays[name] = _read(name, files[0])
    if not {"tokens", "q"} & {*arrays}:
        raise NamingError(
            f'the folder "{path}" has no tokens; it needs tokens.csv, tokens.npy or tokens.json'
        )
    return arrays


def _read(name: str, path: Path) -> Any:
    """One matrix."""
    ending = path.suffix.lower()
    if ending == ".csv":
        return _rows(path)
    if ending == ".json":
        data = read_json(path)
        return data[name] if isinstance(data, Mapping) and name in data else data
    if ending == ".npz":
        arrays = _arrays(path)
        if name not in arrays:
            raise NamingError(f'"{path}" has no array {name}; it has {", ".join(arrays) or "nothing"}')
        return arrays[name]
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise LattendError(
            f'--{name}: "{path}" holds no array of numbers; write it with numpy.save'
        ) from None


def _rows(path: Path) -> list[list[str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return [[cell.strip() for cell in row] for row in csv.reader(file) if any(map(str.strip, row))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LattendError(f'cannot read "{path}" as CSV: {error}') from None


def _arrays(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise LattendError(f'cannot read "{path}" as .npz: {error}') from None
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # numpy gives the bytes of what it did not write
            raise LattendError(f'"{path}" holds no array in {name}; write it with numpy.savez')
    return {name: array if array.ndim else array.item() for name, array in arrays.items()}
