"""lattend gradients: tables, claims and their exit codes, and what it says to wrong input."""

import json

import pytest

SHORT = ("--length", "9", "--steps", "0", "--seeds", "2")


def test_text(lattend, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    ran = lattend("gradients", "rnn", "attention", *SHORT)
    assert (ran.code, ran.err) == (0, "")
    assert "network    d = 1  d = 2  d = 4" in ran.out and "At initialisation" in ran.out
    assert "recalls" not in ran.out and "lstm" not in ran.out


@pytest.mark.parametrize("columns", ["20", "60"])
def test_narrow(lattend, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    ran = lattend("gradients", "rnn", *SHORT)
    assert max(map(len, ran.out.splitlines())) <= int(columns)


def test_json_and_progress(lattend):
    ran = lattend("gradients", "attention", "--length", "5", "--steps", "3", "--seeds", "2", "--json")
    data = json.loads(ran.out)
    assert [one["stage"] for one in data["networks"]] == ["at initialisation", "after training"]
    assert len(data["networks"][0]["sizes"][0]) == 5
    assert ran.err.splitlines()[0].startswith("attention, seed 0: step 3, loss ")


def test_claims(lattend):
    ran = lattend("gradients", "--claim", "rnn vanishes", "--claim", "attention does not vanish")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("rnn vanishes: holds\nat initialisation its gradient is multiplied by 0.4")
    assert lattend("gradients", "--claim", "rnn < attention at 32").code == 0
    assert lattend("gradients", "--claim", "rnn does not vanish", "--claim", "rnn vanishes").code == 1
    far = lattend("gradients", "--claim", "rnn < attention at 40", "--json")  # farther than usual
    assert far.code == 0 and json.loads(far.out)["length"] == 41
    assert [one["network"] for one in json.loads(far.out)["networks"]] == ["rnn", "attention"]


def test_a_claim_about_training_trains(lattend):
    ran = lattend("gradients", "--claim", "attention learns", "--length", "4", "--steps", "1", "--seeds", "2")
    assert ran.code == 1 and "step 1, loss" in ran.err  # one step is too few


def test_picture(lattend, tmp_path):
    path = tmp_path / "gradients.png"
    ran = lattend("gradients", "rnn", *SHORT, "--out", str(path))
    assert ran == (0, f"{path}: Gradient size against distance\n", "")
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gru",), "no network is named gru; there are rnn, lstm, rnn2d, conv, attention"),
        (("--claim", "rnn is nice"), 'a claim about gradients is one such as "rnn vanishes"'),
        (("--claim", "rnn vanishes", "--out", "x.png"), "--out has no part in --claim; leave it out"),
        (("rnn", "--claim", "rnn vanishes"), "NETWORK has no part in --claim; leave it out"),
        (("--claim", "rnn < lstm at 9", "--length", "9"), "distance 9 needs a length of 10, and it is 9"),
        (("--out", "x.gif"), 'cannot save a picture as "x.gif"'),  # said before the training
        (("--out", "nowhere/x.png"), 'there is no folder "nowhere"; make it first'),
        (("--length", "2"), "length is 2; give a whole number from 3 to 513"),
        (("--seed", "1e3"), "--seed is a whole number, got 1e3"),
    ],
)
def test_wrong_input(lattend, arguments, message):
    ran = lattend("gradients", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert message.lower() in ran.err.lower()
