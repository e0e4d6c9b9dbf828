"""What a failed command says, in one line with the place marked, and its exit code."""

from __future__ import annotations

import re
from typing import Any

from lattend.cli.output import complain, width
from lattend.errors import LattendError, NoClosedForm, NotAffineError, TextError, TooLarge

YES, NO, WRONG_INPUT, NO_ANSWER, INTERNAL = range(5)

RULE_HELP = (
    'a catalogue name such as strided or "windowed(w=4)", or a condition such as "k <= q"; '
    "`lattend rules` lists the names"
)
ARGUMENTS = {
    "rule": f"RULE is {RULE_HELP}",
    "other": f"OTHER is a second rule, {RULE_HELP}",
    "image": "IMAGE is pixels, 224, or rows by columns, 480x640",
    "patch": "PATCH is the size of a patch, 16, or rows by columns, 8x16",
    "size": "SIZE is the image, 8, or rows by columns, 8x12",
    "record": "RECORD is the folder that `lattend heads train` wrote, or its record.json",
    "game": 'GAME is a formula such as "p*q", or dirac, or ring',
    "formula": 'FORMULA is what the count should be, such as "n*(n + 1)/2"',
}
# How the library asks for an array
_ARRAY = (
    r"(?:to count, draw or list its pairs )?(?:give it now: |pass it as )data=\{{'{0}': array\}}"
    r"|give {0}=tensor"
)
# The library's advice is Python; here the same is said with options
_OPTIONS = (
    (re.compile(r"rename=\{'(\w+)': '(\w+|…)'\}"), r"--rename \1=\2"),
    (re.compile(r'count\(method="enumerate"\)'), "--method enumerate and --at"),
    (re.compile(r"\bcolumns=True\b"), "--columns"),
    (re.compile(r'\bpadding="(\w+)"'), r"--padding \1"),
    (re.compile(r"count\(deadline=(\d+)\)"), r"--deadline \1"),
    (re.compile(r"count\(((?:\w+=…(?:, )?)+)\)"), r"--at \1"),
    (re.compile(r"\bgive ((?:\w+=…(?:, )?)+)$"), r"give --at \1"),
    (re.compile(r'Game\("[^"]*", minimise="(\w+) (\w+)"\)'), r"--minimise \1,\2"),
    (re.compile(r"\bfirst=(\d+)"), r"--from \1"),
    (re.compile(r"\bper=\"(\w+)\""), r"--per \1"),
    (re.compile(r"folder=…(,? \w+) fetch=True"), r"--data-dir\1 --fetch"),
    (re.compile(r"; or pass it as data=\{'\w+': array\} \(None: [^)]*\)"), ""),
    (re.compile(_ARRAY.format("doc")), 'write the lengths of the documents: "documents([5, 3, 4])"'),
    (re.compile(_ARRAY.format(r"\w+")), 'write it before the rule, as in "x = [0, 0, 1]; x[q] == x[k]"'),
    (re.compile(r"\b(at|pixel)=\((.*?)\)"), lambda found: f"--{found[1]} {found[2].replace(' ', '')}"),
)


def report(error: Exception) -> int:
    """Print an error in one readable line on standard error, and return its exit code."""
    if isinstance(error, TextError):
        complain(in_options(str(error)), error.marked(min(80, width()) - 2))
        return NO_ANSWER if isinstance(error, NotAffineError) else WRONG_INPUT
    if isinstance(error, LattendError):
        complain(in_options(str(error)))
        return NO_ANSWER if isinstance(error, (NoClosedForm, TooLarge)) else WRONG_INPUT
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        complain("this runs on torch, an extra that is not installed: pip install 'lattend[torch]'")
        return NO_ANSWER
    if hasattr(error, "format_message"):  # typer's errors: their class is public only in newer versions
        complain(_usage(error))
        return WRONG_INPUT
    if isinstance(error, OSError):
        complain(f"{error.strerror or error}" + (f": {error.filename}" if error.filename else ""))
        return WRONG_INPUT
    complain(
        "this is a mistake in lattend, please report it: "
        f"{type(error).__name__}: {in_options(str(error))[:200]}. LATTEND_DEBUG=1 shows the traceback"
    )
    return INTERNAL


def in_options(text: str) -> str:
    """The library's advice in terms of options: `--at 0,0` for `at=(0, 0)`."""
    return with_options(" ".join(text.split()))


def with_options(text: str) -> str:
    """The same for several lines."""
    for python, option in _OPTIONS:
        text = python.sub(option, text)
    return re.sub(r"(?<=…), (?=\w+=…)", ",", text)


# What typer's validator finds wrong with a number
_NUMBERS = (
    (re.compile(r"input should be less than or equal to (\S+)"), r"at most \1"),
    (re.compile(r"input should be greater than or equal to (\S+)"), r"at least \1"),
    (re.compile(r"input should be a valid integer.*"), "a whole number"),
    (re.compile(r"input should be a valid number.*"), "a number"),
)


def _wrong_number(error: Any) -> str:
    """The message for an option out of range: `--upto is at most 64, got 100`; "" for other errors."""
    names, message = getattr(getattr(error, "param", None), "opts", ()), str(getattr(error, "message", ""))
    for phrase, means in _NUMBERS:
        wanted = phrase.fullmatch(message.lower())
        if wanted is not None and names:
            reasons = getattr(error.__cause__, "errors", list)()
            got = f", got {reasons[0]['input']}" if reasons else ""
            return f"{max(names, key=len)} is {wanted.expand(means)}{got}"
    return ""


# What stands after an option, where it may be left out by mistake
_VALUES = {
    "--draw": "a file to draw into after it, as in --draw chart.svg",
    "--out": "the name of what to write after it, as in --out NAME",
    "-o": "the name of what to write after it, as in -o NAME",
}


def _no_value(error: Any) -> str:
    """The message for an option without its value: `--draw needs a file to draw into`; "" otherwise."""
    option = getattr(error, "option_name", None)
    if option not in _VALUES or not str(getattr(error, "message", "")).endswith("requires an argument."):
        return ""
    return f"{option} needs {_VALUES[option]}"


def _is_number(error: Any) -> str:
    """The message for a number as an option: `--n 512` instead of `--at n=512`; "" for other errors."""
    option, context = str(getattr(error, "option_name", "")), getattr(error, "ctx", None)
    known = [] if context is None else [name for param in context.command.params for name in param.opts]
    begins = any(name.startswith(option) for name in known)
    if type(error).__name__ != "NoSuchOption" or "--at" not in known or len(option) != len("--n") or begins:
        return ""
    return f"no such option: {option}. Numbers of a rule go together: --at {option.lstrip('-')}=8"


def _usage(error: Any) -> str:
    """The message for wrong arguments, and where the help is."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "lattend"
    missing = getattr(getattr(error, "param", None), "name", None)
    if missing in ARGUMENTS and type(error).__name__ == "MissingParameter":
        command = context.info_name if context is not None else "the command"
        return f"{command} needs {missing.upper()}. {ARGUMENTS[missing]}. See `{path} --help`"
    message = (
        _no_value(error)
        or _wrong_number(error)
        or _is_number(error)
        or " ".join(error.format_message().split())
    )
    end = "" if message.endswith((".", "?")) else "."
    return f"{message[:1].lower()}{message[1:]}{end} See `{path} --help`"
