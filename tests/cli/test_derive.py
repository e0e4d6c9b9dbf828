"""lattend derive: the list, one derivation in each form, and wrong input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lattend.cli.main import main
from lattend.study.derivations.draft import HOMES


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["derive", *words])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_without_a_name_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys)
    assert code == 0
    assert all(f"\n{name} " in out for name in HOMES)
    assert set(json.loads(run(capsys, "--json")[1])["derivations"]) == set(HOMES)


def test_one_derivation(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "strided")
    assert code == 0
    assert "\n  = (2n − t)(t + 1)/2 " in out
    assert "\n    checked, 5 lines: proved to be the number of pairs where t <= n\n" in out


def test_forms(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert r"&= \frac{(2 n - t) (t + 1)}{2} && \text{" in run(capsys, "strided", "--latex")[1]
    assert "<mfrac>" in run(capsys, "strided", "--html")[1]
    assert json.loads(run(capsys, "strided", "--json")[1])["lines"][-1]["formula"] == "= Σ_{i=n−t}^n i"
    for ending, part in ((".html", "<!doctype html>"), (".tex", r"\begin{align*}"), (".txt", "checked:")):
        path = tmp_path / f"strided{ending}"
        code, out, _ = run(capsys, "strided", "--out", str(path))
        assert (code, out) == (
            0,
            f"{path}: The pairs of strided attention: at most t positions before, and itself\n",
        )
        assert part in path.read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["strded"], 'there is no derivation "strded"; did you mean strided? There are causal, strided'),
        (["--latex"], "--latex needs NAME; `lattend derive` lists the names"),
        (["causal", "--latex", "--json"], "--latex and --json are two forms of one derivation; give one"),
        (["causal", "--out", "x.doc"], "the ending is not one of .html, .tex, .json, .txt"),
        (["causal", "--out", "nowhere/x.tex"], 'there is no folder "nowhere"; make it first'),
    ],
)
def test_wrong_input(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert said in err
