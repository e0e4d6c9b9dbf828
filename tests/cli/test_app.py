"""The command as a whole: help, usage, exit codes, mistakes of its own."""

import shlex

import pytest

from lattend import __version__
from lattend.cli import app, failures
from lattend.cli.app import COMMANDS
from lattend.cli.main import main

QUICK = (  # commands all of whose examples take no time
    *("rules", "draw", "count", "claim", "reach", "cache", "same", "check", "explain", "patches"),
    *("heads", "conv", "grid"),
)
EXAMPLES = [*app.EXAMPLES, *(line for name in QUICK for line in COMMANDS[name].about()[1])]


def test_help_and_version(lattend):
    assert lattend("--version") == (0, f"lattend {__version__}\n", "")
    ran = lattend("--help")
    assert (ran.code, ran.err) == (0, "")
    for name in COMMANDS:
        assert f"\n  {name} " in ran.out
    assert "Exit codes: 0 done" in ran.out


def test_no_arguments_give_help_and_fail(lattend):
    ran = lattend()
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Usage: lattend ")


@pytest.mark.parametrize("name", QUICK)
def test_help_of_each_command_shows_its_examples(lattend, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "40")
    ran = lattend(*name.split(), "--help")
    assert (ran.code, ran.err) == (0, "")
    for line in COMMANDS[name].about()[1]:
        assert f"\n    {line}\n" in ran.out


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_run(lattend, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(line)
    ran = lattend(*arguments)
    assert program == "lattend"
    assert ran.code in (failures.YES, failures.NO)
    assert ran.out
    assert ran.err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("count",),
            'count needs RULE. RULE is a catalogue name such as strided or "windowed(w=4)", or a condition '
            'such as "k <= q"; `lattend rules` lists the names. See `lattend count --help`',
        ),
        (
            ("claim", "causal"),
            'claim needs FORMULA. FORMULA is what the count should be, such as "n*(n + 1)/2". '
            "See `lattend claim --help`",
        ),
        (("same", "causal"), "same needs OTHER. OTHER is a second rule, a catalogue name"),
        (
            ("cuont", "causal"),
            "no such command 'cuont'. Did you mean 'count', 'cost', 'conv'? See `lattend --help`",
        ),
        (("count", "causal", "--nope"), "no such option: --nope"),
        (("count", "causal", "--n", "8"), "no such option: --n. Numbers of a rule go together: --at n=8"),
        (("cost", "lstm", "--draw"), "--draw needs a file to draw into after it, as in --draw chart.svg."),
        (("draw", "causal", "-o"), "-o needs the name of what to write after it, as in -o NAME."),
        (("count", "causal", "extra"), "got unexpected extra argument"),
        (("count", "causal", "--deadline", "soon"), "--deadline is a number, got soon"),
    ],
)
def test_usage(lattend, arguments, message):
    ran = lattend(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")
    assert ran.err.count("\n") == 1


def _broken(*_: object) -> None:
    raise ZeroDivisionError("one\ntwo")


def test_a_mistake_of_our_own_is_one_line(lattend, monkeypatch):
    monkeypatch.setattr("lattend.rules.reader.read_rule", _broken)
    assert lattend("count", "causal") == (
        4,
        "",
        "lattend: this is a mistake in lattend, please report it: ZeroDivisionError: one two. "
        "LATTEND_DEBUG=1 shows the traceback\n",
    )


def test_debug_shows_the_traceback(monkeypatch):
    monkeypatch.setattr("lattend.rules.reader.read_rule", _broken)
    monkeypatch.setenv("LATTEND_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["count", "causal"])


def test_interrupt(lattend, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lattend.rules.reader.read_rule", interrupted)
    assert lattend("count", "causal") == (130, "", "")


def test_control_characters_are_spelt_out(lattend):
    """A text may come from anywhere; what points at it must not act on the terminal."""
    ran = lattend("count", "k <= q \x1b[2J\u202e")
    assert ran.code == 2
    assert ran.err.splitlines()[1:] == ["  k <= q \\x1b[2J\\u202e", "         ^^^^"]
    for arguments in (
        ("count", "causal", "--at", "n\x1b=3"),
        ("claim", "causal", "n\x07"),
        ("count", "\x1b(3)"),
    ):
        err = lattend(*arguments).err
        assert not any(ord(mark) < 32 and mark != "\n" for mark in err), err


def test_the_list_of_commands_is_whole_in_a_narrow_terminal(lattend, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    shown = lattend("--help").out.partition("Commands:")[2]
    assert "..." not in shown
    assert max(map(len, shown.splitlines())) <= 60
    assert "of a query its keys can be." in " ".join(shown.split())


@pytest.mark.parametrize("command", ["draw", "count", "explain"])
def test_documents_are_asked_for_as_one_types_them(lattend, command):
    ran = lattend(command, "documents")
    assert ran.code == 2
    assert ran.err.endswith('write the lengths of the documents: "documents([5, 3, 4])"\n')
    assert "data=" not in ran.err and "tensor" not in ran.err


@pytest.mark.parametrize("command", ["draw", "count", "explain"])
def test_an_array_is_written_before_the_rule(lattend, command):
    ran = lattend(command, "chosen[q // 4] == 1")
    assert ran.code == 2
    assert "write it before the rule, as in chosen = [0, 0, 1]\n" in ran.err
    assert lattend("count", "doc = [0, 0, 1]; doc[q] == doc[k]").out == "5\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("check", "causal", "--upto", "100"), "--upto is at most 64, got 100. See `lattend check --help`"),
        (("check", "causal", "--upto", "-1"), "--upto is at least 0, got -1."),
        (("check", "causal", "--upto", "ten"), "--upto is a whole number, got ten."),
        (("count", "causal", "--deadline", "-1"), "--deadline is at least 0, got -1."),
    ],
)
def test_numbers_out_of_range(lattend, arguments, message):
    ran = lattend(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")


@pytest.mark.parametrize("arguments", [("reach", "bigbird"), ("rules", "swin"), ("count", "swin")])
@pytest.mark.parametrize("columns", [40, 60, 100])
def test_formulas_wrap(lattend, monkeypatch, arguments, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    ran = lattend(*arguments)
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= columns
