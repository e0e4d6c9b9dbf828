"""Every question is asked as it stands, in the terminal and in Python, and answered as the page says."""

from __future__ import annotations

import doctest
import json
import shlex
from pathlib import Path

import pytest

from lattend.ask import Question, nearest, questions, search
from lattend.ask.pages import markdown, notebook
from lattend.cli.main import main

PAGE = Path(__file__).parents[2] / "docs" / "questions.md"
COUNT = 93
by_number = pytest.mark.parametrize("one", questions(), ids=lambda one: str(one.number))


def same(wanted: str, printed: str) -> bool:
    return doctest.OutputChecker().check_output(f"{wanted}\n", f"{printed.strip()}\n", doctest.ELLIPSIS)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("LATTEND_DEBUG", raising=False)


@by_number
def test_commands(one: Question, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in one.files.items():
        Path(name).write_text(text)
    assert one.commands
    for command, wanted in one.commands:
        words = shlex.split(command)
        assert words[0] == "lattend"
        code = main(words[1:])
        printed = capsys.readouterr()
        assert code in (0, 1), printed.err
        assert "lattend: " not in printed.err  # only progress
        assert wanted.strip(".\n ")
        assert same(wanted, printed.out), f"$ {command}\n{printed.out}"


@by_number
def test_python(one: Question) -> None:
    test = doctest.DocTestParser().get_doctest(
        f">>> import lattend as lt\n{one.python}", {}, str(one.number), "", 0
    )
    report: list[str] = []
    outcome = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert outcome.failed == 0, "".join(report)
    assert any(example.want for example in test.examples), "nothing is printed"


def test_all_are_there() -> None:
    assert len(questions()) == COUNT
    assert len({one.asks for one in questions()}) == COUNT


def test_page_is_that_of_the_questions() -> None:
    assert PAGE.read_text() == markdown(questions()), "lattend ask --out docs/questions.md"


def test_pictures_exist() -> None:
    for one in questions():
        assert not one.picture or (PAGE.parent / "pictures" / one.picture).exists()


def test_notebook_is_valid_and_its_code_compiles() -> None:
    written = json.loads(notebook(questions()))
    assert (written["nbformat"], written["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in written["cells"]}) == len(written["cells"])
    for cell in written["cells"]:
        if cell["cell_type"] == "code":
            compile(cell["source"], "cell", "exec")


def test_search_needs_every_word() -> None:
    found = search(["STRIDED", "count"])
    assert found
    assert all(word in str(one.json()).casefold() for one in found for word in ("strided", "count"))
    assert len(found) < min(len(search(["strided"])), len(search(["count"])))
    assert search(["no such word at all"]) == []


def test_files_of_another_content_are_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    one = next(one for one in questions() if one.files)
    name = next(iter(one.files))
    Path(name).write_text("mine")
    assert main(["ask", str(one.number)]) == 2
    assert f'there is another "{name}" here; ask in another folder' in capsys.readouterr().err
    assert Path(name).read_text() == "mine"
    Path(name).unlink()
    assert main(["ask", str(one.number)]) in (0, 1)
    assert main(["ask", str(one.number)]) in (0, 1)  # its own file is read again


@pytest.mark.parametrize(
    ("words", "number"),
    [
        ("sliding window", 6),
        ("How much memory does a Transformer need?", 70),
        ("vanishing gradients", 46),
        ("positional encoding", 57),
        ("KV cache", 71),
        ("elbo derivation", 83),
        ("flops of a convolution", 43),
    ],
)
def test_search_reads_words_of_the_field(words: str, number: int) -> None:
    assert number in [one.number for one in search(words.split())]
    assert search([words]) == search(words.split())


def test_words_that_no_question_has_leave_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert search(["unheard-of", "equilibrium"]) == []
    assert [one.number for one in nearest(["unheard-of", "equilibrium"])] == [91, 92]
    assert main(["ask", "unheard-of", "equilibrium"]) == 1
    assert "no question has all of: unheard-of equilibrium; these have most of it" in capsys.readouterr().out
    assert main(["ask", "causl"]) == 1
    assert capsys.readouterr().out == "no question has all of: causl; did you mean causal?\n"


def test_several_numbers_are_run_one_after_another(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", "1", "2"]) == 0
    printed = capsys.readouterr().out
    assert printed.index("1. How many") < printed.index("2. How many")
    assert main(["ask", "1", "94"]) == 2
