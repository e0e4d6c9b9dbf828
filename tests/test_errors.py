"""What an error says to a person who writes Python, and to one who does not."""

from __future__ import annotations

import pickle

import pytest

import lattend as lt
from lattend.errors import LattendError, NoClosedForm, NotAffineError, TextError


def test_the_reason_is_the_message_unless_it_is_said_apart() -> None:
    assert LattendError("no such file").reason == "no such file"
    apart = LattendError("no room: call clear()").with_reason("no room")
    assert (str(apart), apart.reason) == ("no room: call clear()", "no room")


def test_an_error_comes_whole_from_another_process() -> None:
    for error in (
        NoClosedForm.of_rule("doc[q] == doc[k]", "looks up data"),
        TextError('rule "q +": it ends', "q +", 3, 4, reason="it ends"),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.reason) == (type(error), str(error), error.reason)


def test_a_count_without_a_closed_form_says_what_still_works_in_python_and_without() -> None:
    with pytest.raises(NotAffineError) as raised:
        lt.rule("k*k <= q").count()
    assert str(raised.value).endswith('or count by enumeration with count(method="enumerate").')
    assert raised.value.reason.endswith("constant factors, or give every letter a number.")


def test_the_reason_for_a_missing_array_asks_for_no_python() -> None:
    with pytest.raises(TextError) as raised:
        lt.rule("doc[q] == doc[k]")
    assert str(raised.value).endswith(
        "as in doc = [0, 0, 1]; or pass it as data={'doc': array} (None: given with each call)"
    )
    assert raised.value.reason.endswith("write it before the rule, as in doc = [0, 0, 1]")
