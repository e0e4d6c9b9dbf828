"""lattend elbo: the exact identity, a model fitted to a file, the digits, and what it says to wrong input."""

import json
import math
import sys

import numpy as np
import pytest

from lattend.study.generative.training import Epoch

QUICK = ("--k", "1,4", "--samples", "20")

LINEAR = """\
A linear-Gaussian model: ELBO + gap = log p(x)

model     x = W z + b + noise: 6 numbers from 2 latents
log p(x)  −10.196946209306 nats, mean of 5 examples
identity  ELBO + gap = log p(x) within 1e−12, for each example
"""

TABLE = """\
q              reconstruction      KL      ELBO      gap        ELBO + gap
posterior             −8.4250  1.7719  −10.1969   0.0000  −10.196946209306
best diagonal         −8.6421  1.9057  −10.5478   0.3509  −10.196946209306
prior                −20.7207  0.0000  −20.7207  10.5237  −10.196946209306
"""


def test_linear(lattend):
    ran = lattend("elbo", "linear", *QUICK)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(LINEAR)
    assert TABLE in ran.out
    assert "log p(x) − importance bound\nnats up, k across\n" in ran.out


def test_json(lattend):
    data = json.loads(lattend("elbo", "linear", *QUICK, "--size", "9", "--latent", "4", "--json").out)
    assert (data["dimensions"], data["latent"], data["examples"], data["file"]) == (9, 4, 5, None)
    for found in data["identity"].values():
        assert abs(found["elbo"] + found["gap"] - data["log_prob"]) < 1e-11
        assert found["error"] < 1e-11
    assert [bound["k"] for bound in data["bounds"]["prior"]] == [1, 4]
    assert data["identity"]["posterior"]["gap"] < 1e-12 < data["identity"]["best diagonal"]["gap"]


@pytest.mark.parametrize("ending", ["csv", "npy", "json", "npz"])
def test_rows_of_a_file(lattend, tmp_path, ending):
    """The model is the likeliest for the rows: its evidence is that of their covariance, one part evened."""
    rows = np.random.default_rng(0).normal(size=(50, 3)) @ np.diag([3.0, 1.0, 0.5]) + 2
    path = tmp_path / f"rows.{ending}"
    write = {
        "csv": lambda: np.savetxt(path, rows, delimiter=","),
        "npy": lambda: np.save(path, rows),
        "json": lambda: path.write_text(json.dumps(rows.tolist())),
        "npz": lambda: np.savez(path, data=rows),
    }
    write[ending]()
    arguments = ("elbo", "linear", *QUICK, "--data", str(path), "--latent", "1", "--examples", "50", "--json")
    data = json.loads(lattend(*arguments).out)
    values = np.linalg.eigvalsh(np.cov(rows.T, bias=True))
    noise = values[:2].mean()
    log_det = np.log(values[2]) + 2 * np.log(noise)
    assert data["log_prob"] == pytest.approx(-(3 * np.log(2 * np.pi) + log_det + 3) / 2)


def test_digits(lattend, monkeypatch):
    monkeypatch.setattr("lattend.study.generative.handwritten.K", 4)
    ran = lattend("elbo", "digits", "--binary", "--epochs", "1", "--latent", "2", "--show", "plane", "--json")
    assert ran.code == 0
    first, then = ran.err.splitlines()
    assert first.startswith("epoch   1   ELBO ")
    assert then == "bounds of 360 test digits, k = 4 …"
    data = json.loads(ran.out)
    assert data["title"].startswith("The plane of two latents; test ELBO −")
    bound, tighter = data["elbo"], data["importance"]
    assert (bound["examples"], bound["dimensions"], tighter["k"]) == (360, 64, 4)
    assert bound["elbo"] == pytest.approx(bound["reconstruction"] - bound["kl"], abs=1e-3)
    assert bound["elbo"] < tighter["bound"] + 3 * (bound["standard_error"] + tighter["standard_error"])
    assert -64 * np.log(2) < bound["elbo"] < 0  # better than a coin for each pixel
    assert len(data["history"]) == 1 and data["picture"]["rows"]


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("txt", b"A linear")])
def test_files(lattend, tmp_path, ending, start):
    path = tmp_path / f"bound.{ending}"
    ran = lattend("elbo", "linear", *QUICK, "--out", str(path))
    assert ran == (0, f"{path}: A linear-Gaussian model: ELBO + gap = log p(x)\n", "")
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("columns", ["20", "40", "80"])
def test_narrow(lattend, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    ran = lattend("elbo", "linear", *QUICK)
    assert max(map(len, ran.out.splitlines())) <= int(columns)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--epochs", "3"), "say which model: `lattend elbo digits …`"),
        (("vae",), "elbo has linear, digits, gaussian, discrete, not 'vae'"),
        (("linear", "--epochs", "3"), "--epochs belongs to `lattend elbo digits`; leave it out"),
        (("linear", "--binary"), "--binary belongs to `lattend elbo digits`; leave it out"),
        (("digits", "--noise", "1"), "--noise belongs to `lattend elbo linear`; leave it out"),
        (("linear", "--noise", "0"), "noise must be a variance above 0, got 0; take a small one"),
        (("linear", "--noise", "-1"), "noise must be a variance above 0, got -1; take a small one"),
        (("linear", "--noise", "nan"), "noise must be finite, got nan; look"),
        (("linear", "--k", "1,x"), "--k: x is no number"),
        (("linear", "--k", "0"), "--k has whole numbers from 1 to 10,000"),
        (("linear", "--k", "1.5"), "--k has whole numbers from 1 to 10,000"),
        (("linear", "--size", "0"), "--size must be from 1 to 1,024, got 0"),
        (("linear", "--latent", "9999"), "--latent must be from 1 to 1,024, got 9,999"),
        (("linear", "--examples", "0"), "--examples must be from 1 to 4,096, got 0"),
        (("linear", "--samples", "0"), "samples must be a whole number from 1 on, got 0"),
        (("linear", "--data", "none.csv"), '--data: there is no file "none.csv"'),
        (
            ("linear", "--data", "rows.txt"),
            '--data: "rows.txt" is not a number: . is not part of a formula; files end in .json,',
        ),
        (
            ("linear", "--data", "a.csv", "--size", "3"),
            "--size is found from the rows of --data; leave it out",
        ),
        (
            ("digits", "--show", "all"),
            "the picture is one of samples, rebuilt, between, latent, plane, training, not 'all'",
        ),
        (("digits", "--show", "plane"), "the plane is that of two latents, got 16"),
        (("digits", "--epochs", "0"), "epochs must be a whole number from 1 on, got 0"),
        (("digits", "--latent", "0"), "--latent must be from 1 to 1,024, got 0"),
        (("digits", "--latent", "99999999"), "--latent must be from 1 to 1,024, got 99,999,999"),
        (("linear", "--noise", "1e-17"), "noise 1e-17 is lost in the rounding of torch.float64 beside W"),
        (("linear", "--seed", str(10**23)), "seed must be a whole number from −2⁶³ to 2⁶⁴ − 1, got 1000"),
        (("digits", "--seed", str(10**23)), "seed must be a whole number from −2⁶³ to 2⁶⁴ − 1, got 1000"),
        (("linear", *QUICK, "--out", "x.gif"), 'cannot save a picture as "x.gif"'),
    ],
)
def test_wrong_input(lattend, arguments, message):
    ran = lattend("elbo", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")


def test_without_torch(lattend, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "lattend.study.generative.linear_picture", raising=False)
    said = "lattend: this runs on torch, an extra that is not installed: pip install 'lattend[torch]'\n"
    assert lattend("elbo", "linear") == (3, "", said)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n3,x\n", '--data[1][1]: "x" is not a number'),
        ("1,2\n3\n", "--data must have as many numbers in each row; row 1 has 2 and row 2 has 1"),
        ("", "--data must be numbers; there is no number in it"),
    ],
)
def test_files_that_are_no_rows(lattend, tmp_path, text, message):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    ran = lattend("elbo", "linear", "--data", str(path))
    assert ran.code == 2 and ran.err.startswith(f"lattend: {message}")


def test_rows_with_a_hole(lattend, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("1,2,3\n4,nan,6\n")
    ran = lattend("elbo", "linear", "--data", str(path), "--latent", "1")
    assert ran.code == 2 and ran.err.startswith('lattend: --data[1][1]: "nan" is not a number')


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (None, '--data: "{path}" holds no array of numbers; write it with numpy.save'),
        (np.ones((3, 2)) * 1j, "--data[0][0]: 1j is not a number"),
        (np.ones(3), "--data has rows of at most 1024 numbers, got shape (3,)"),
    ],
)
def test_arrays_that_are_no_rows(lattend, tmp_path, array, message):
    path = tmp_path / "rows.npy"
    path.write_bytes(b"") if array is None else np.save(path, array)
    ran = lattend("elbo", "linear", "--data", str(path))
    assert ran.code == 2 and ran.err.startswith(f"lattend: {message.format(path=path)}")


def test_the_first_epoch_is_told_and_a_stop(lattend, monkeypatch):
    seen = []

    def stop(progress, **options):
        for number in range(1, 9):
            progress(Epoch(number, -90.0, -80.0, 10.0, None, 1.0))
        raise KeyboardInterrupt

    monkeypatch.setattr("lattend.study.generative.handwritten.show_digits", stop)
    ran = lattend("elbo", "digits")
    seen = [line.split()[:2] for line in ran.err.splitlines()]
    assert seen == [["epoch", "1"], ["epoch", "4"], ["epoch", "8"], ["lattend:", "stopped"]]
    assert ran.code == 130


def test_without_a_model_all_are_told(lattend):
    ran = lattend("elbo")
    assert (ran.code, ran.err) == (0, "")
    assert "\nlinear    x = W z + b + noise" in ran.out and "\ndigits    a VAE" in ran.out
    assert "`lattend derive elbo`" in ran.out


def test_gaussian_is_exact(lattend):
    """x = 2z + 1 + noise of variance 4 with x = 3: the evidence is N(1, 8), by hand."""
    model = (
        "--weight",
        "2",
        "--bias",
        "1",
        "--noise",
        "4",
        "--x",
        "3",
        "--mean",
        "-1/2",
        "--variance",
        "1/4",
    )
    data = json.loads(lattend("elbo", "gaussian", *model, "--json").out)
    numbers = {name: value for name, (_, value) in ((n, v) for n, v in data.items() if isinstance(v, list))}
    assert numbers["log_prob"] == pytest.approx(-math.log(2 * math.pi * 8) / 2 - 4 / 16, abs=1e-12)
    assert numbers["kl"] == pytest.approx((0.25 + 0.25 - 1 - math.log(0.25)) / 2, abs=1e-12)
    assert numbers["elbo"] + numbers["gap"] == pytest.approx(numbers["log_prob"], abs=1e-12)
    assert "posterior       mean 1/2, variance 1/2\n" in lattend("elbo", "gaussian", *model).out


def test_discrete_is_exact(lattend):
    """p(x) = 1/4 · 1/2 + 3/4 · 1/6 = 1/4, and the posterior is even."""
    ran = lattend("elbo", "discrete", "--prior", "1/4,3/4", "--likelihood", "1/2,1/6", "--q", "1/2,1/2")
    assert (ran.code, ran.err) == (0, "")
    assert "log p(x)        log(1/4) = -1.386294\n" in ran.out
    assert "gap             0 = 0.000000" in ran.out
    assert ran.out.endswith("posterior  1/2, 1/2\n")
    prior = json.loads(
        lattend("elbo", "discrete", "--prior", "1/4,3/4", "--likelihood", "1/2,1/6", "--json").out
    )
    assert prior["kl"] == ["0", 0.0]


def test_the_list_of_models_names_the_exact_ones(lattend):
    ran = lattend("elbo")
    assert "\ngaussian  one number from one Gaussian latent" in ran.out
    assert "\ndiscrete  z takes a few values" in ran.out
    for model in ("gaussian", "discrete"):
        assert lattend("elbo", model, "--help").out.startswith(f"Usage: lattend elbo {model} ")


def test_the_gaussian_bound_is_drawn(lattend, tmp_path):
    file = tmp_path / "bound.tex"
    ran = lattend("elbo", "gaussian", "--out", str(file))
    assert ran == (0, f"{file}: The evidence lower bound, in nats\n", "")
    assert "tikzpicture" in file.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gaussian", "--noise", "0"), "noise must be above 0, at least 1/1000000: it is a variance; got 0"),
        (("gaussian", "--x", "a"), 'x: "a" is not a number'),
        (("gaussian", "--epochs", "3"), "no such option: --epochs"),
        (("discrete", "--prior", "1/2,1/2"), "p(z) is of 2 values of z, and p(x|z) has 3 numbers"),
        (("discrete", "--q", "1,1,1"), "the numbers of q(z|x) add up to 3, not to 1"),
        (("discrete", "--likelihood", "1,2,3"), "p(x|z) has fractions from 0 to 1, got 2"),
    ],
)
def test_wrong_exact_models(lattend, arguments, message):
    ran = lattend("elbo", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")
