"""lattend explain: what attention would do, as text, as JSON and as a picture."""

import json
import os
import subprocess
import sys

import pytest

import lattend as lt


def test_text(lattend):
    ran = lattend("explain", "strided", "--at", "n=65536,t=255", "--device", "cuda", "--dtype", "bfloat16")
    assert (ran.code, ran.err) == (0, "")
    found = lt.explain(lt.rules.strided(), n=65536, t=255, device="cuda", dtype="bfloat16")
    assert ran.out == f"{found.text(80)}\n"
    assert "16,744,576" in ran.out and "triton     yes, chosen" in ran.out


def test_options(lattend):
    ran = lattend(
        "explain", "windowed(w=64)", "--n", "2048", "--heads", "2", "--head-dim", "32", "--batch", "3",
        "--kernel", "cpu",
    )  # fmt: skip
    assert ran.code == 0
    assert "\nq (3, 2, 2048, 32), float32 on cpu\n" in ran.out
    assert "cpu        yes, chosen" in ran.out
    heads = lattend("explain", "k <= q and q - k <= batch*head", "--at", "n=64,heads=3,batch=5")
    assert "of 3 heads" in heads.out and "n = 64, heads = 3, batch = 5" in heads.out


def test_a_whole_call(lattend):
    gpu = ("--device", "cuda", "--dtype", "bfloat16")
    ran = lattend("explain", "causal", "--n", "512", "--padding", "512,100", "--softcap", "50", "--sinks",
        "--dropout", "0.1", *gpu,
    )  # fmt: skip
    assert (ran.code, ran.err) == (0, "")
    asked = {"padding": [512, 100], "softcap": 50.0, "sinks": True, "dropout": 0.1}
    found = lt.explain("causal", n=512, **asked, device="cuda", dtype="bfloat16")
    assert ran.out == f"{found.text(80)}\n"
    assert "padding: 612 of 1,024 keys are real" in ran.out
    ran = lattend("explain", "causal", "--sequences", "30,0,70", "--json")
    assert json.loads(ran.out)["pairs"]["needed"] == 30 * 31 // 2 + 70 * 71 // 2
    wrong = lattend("explain", "causal", "--padding", "5;6")
    assert wrong.code == 2 and "--padding is a list of lengths, as in 4096,1000,37" in wrong.err


def test_json(lattend):
    ran = lattend("explain", "sparse_fixed(l=16, c=2)", "--n", "512", "--json")
    assert (ran.code, ran.err) == (0, "")
    data = json.loads(ran.out)
    assert data == {**lt.explain(lt.rules.sparse_fixed(l=16, c=2), n=512).json(), "file": None}
    assert data["pairs"]["needed"] == lt.rules.sparse_fixed(l=16, c=2).count(n=512)


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("txt", b"strided")])
def test_files(lattend, tmp_path, ending, start):
    path = tmp_path / f"plan.{ending}"
    ran = lattend("explain", "strided", "--at", "n=4096,t=31", "-o", str(path))
    assert ran == (0, f"{path}: strided (n = 4,096, t = 31)\n", "")
    assert path.read_bytes().startswith(start)


def test_no_kernel_is_no(lattend):
    ran = lattend("explain", "strided(3)", "--kernel", "cpu", "--device", "cuda")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.endswith(
        'attention would raise: kernel="cpu" cannot run this: it runs on the CPU, and q\n  is on cuda\n'
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "explain needs RULE. RULE is a catalogue name"),
        (("strided",), 'rule "k <= q and q - k <= t" needs a value for t: give --at t=…'),
        (("causl",), 'rule "causl": no rule is named causl; did you mean causal?'),
        (
            ("causal", "--dtype", "bf16"),
            "dtype is one of float16, bfloat16, float32, float64, float8_e4m3fn, not bf16",
        ),
        (("causal", "--device", "gpu"), 'device is "cpu" or "cuda", not'),
        (
            ("causal", "--kernel", "fast"),
            "kernel is one of sdpa, triton, native, cpu, dense, reference, not 'fast'",
        ),
        (("causal", "--head-dim", "0"), "head_dim must be at least 1, got 0"),
        (("causal", "--n", "five"), "--n is a whole number, got five"),
        (("causal", "--n", "-1"), "n must be at least 0, got -1"),
        (("causal", "--n", "5", "--at", "n=5"), "n is given by --n and by --at; give it once"),
        (("causal", "--at", "w=5"), 'rule "k <= q" has no w'),
        (("causal", "-o", "x.bmp"), 'cannot save a picture as "x.bmp": the ending is not one of'),
    ],
)
def test_wrong_input(lattend, arguments, message):
    ran = lattend("explain", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")
    assert ran.err.count("\n") <= 3


def test_too_long_a_line_has_no_answer(lattend):
    ran = lattend("explain", "causal", "--n", "10000000000")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith("lattend: 10,000,000,000 positions have more tiles than explain lists")


@pytest.mark.parametrize("columns", ["20", "40", "80", "100"])
def test_narrow(lattend, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    ran = lattend("explain", "sparse_strided", "--at", "n=4096,l=64")
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= int(columns)


def test_pipe_in_ascii() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lattend", "explain", "neighbourhood(1)", "--kernel", "cpu"],
        capture_output=True,
        check=False,
        env={**os.environ, "COLUMNS": "80", "PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"boxes of 4 x 8 pixels" in done.stdout and b"\x1b" not in done.stdout


def test_without_torch() -> None:
    program = (
        "import sys\nsys.modules['torch'] = None\n"
        "from lattend.cli.main import main\nprint(main(['explain', 'causal']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "3\n"
    assert done.stderr == (
        "lattend: this runs on torch, an extra that is not installed: pip install 'lattend[torch]'\n"
    )


def test_the_map_of_tiles(lattend, tmp_path):
    arguments = ("explain", "strided", "--at", "n=300,t=40", "--kernel", "cpu", "--tiles")
    mask, found = lt.rules.strided(t=40).mask(n=300), lt.explain("strided", n=300, t=40, kernel="cpu")
    ran = lattend(*arguments)
    assert (ran.code, ran.err) == (0, "")
    assert f"pairs that run  {found.executed:,} of 90,000\n" in ran.out
    assert f"attended        {mask.sum():,} of them\n" in ran.out
    part = lattend(*arguments, "--queries", "60:124", "--keys", "0:64")
    assert "queries         60 to 123\nkeys            0 to 63\n" in part.out
    assert f"attended        {mask[60:124, :64].sum():,} of them\n" in part.out
    data = json.loads(lattend(*arguments, "--queries", "60:124", "--keys", "0:64", "--json").out)
    assert data["needed"] == mask[60:124, :64].astype(int).tolist()
    file = tmp_path / "tiles.svg"
    assert lattend(*arguments, "--out", str(file)).out == f"{file}: {found.title}\n"
    assert file.read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("causal", "--n", "64", "--queries", "0:4"), "--queries belongs to --tiles; give both"),
        (
            ("causal", "--n", "64", "--tiles", "--keys", "4"),
            "--keys is the first position and the end, as in 0:1024",
        ),
        (
            ("causal", "--n", "64", "--tiles", "--keys", "0:65"),
            "positions 0 to 65 are not within the 64 there are",
        ),
        (
            ("neighbourhood(1)", "--at", "rows=8,cols=8", "--tiles"),
            "tiles are mapped on a line, without arrays and padding; the plan's picture shows some tiles",
        ),
    ],
)
def test_wrong_maps(lattend, arguments, message):
    ran = lattend("explain", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"lattend: {message}")
