"""lattend cost: tables, claims, pictures, models, and what it says to wrong input."""

import json

import pytest


def test_formulas(lattend):
    ran = lattend("cost", "rnn2d")
    assert (ran.code, ran.err) == (0, "")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert lines[0] == "rnn2d in n, c, h"
    at = lines.index("multiplies")
    assert lines[at + 1 : at + 4] == [
        "needed n*h(2n*h + n*c - 2h)", "executed n^2*h(2h + c)", "dense n^2*h(2h + c)",
    ]  # fmt: skip
    assert "sequential depth (depth) 2n - 1" in lines


def test_three_columns(lattend):
    ran = lattend("cost", "attention", "--rule", "causal", "--at", "n=4096,heads=32,D_i=4096,D_hid=128")
    assert "multiplies 343,614,160,896 344,671,125,504 412,316,860,416" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("claims", "code", "said"),
    [
        (["multiplies: n^2 h c + 2n(n-1)h^2"], 0, "holds for"),
        (["multiplies: O(n^2 h^2)"], 1, "fails; along c = s the count grows faster"),
        (["depth: 2n - 1", "adds: 0"], 1, "depth: 2n - 1: holds"),
    ],
)
def test_claims(lattend, claims, code, said):
    ran = lattend("cost", "rnn2d", *(part for claim in claims for part in ("--claim", claim)))
    assert ran.code == code
    assert said in ran.out


def test_statements(lattend, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, lattend("cost", "rnn2d", "--statements").out.splitlines())) <= 60
    monkeypatch.setenv("COLUMNS", "120")
    lines = lattend("cost", "rnn2d", "--statements").out.splitlines()
    assert [line.split()[0] for line in lines] == ["rnn2d", "in", "left", "top", "σ"]
    assert "n*h^2(n - 1)" in lines[2] and lines[2].endswith("1 <= col and col < cols and o < h and i < h")


def test_check(lattend):
    ran = lattend("cost", "rnn2d(cell=lstm)", "--at", "n=2,h=3,c=2", "--check")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("rnn2d of lstm cells at n = 2, h = 3, c = 2, run on numbers that count")
    assert ran.out.count("equal") == 8 and "differs" not in ran.out
    data = json.loads(lattend("cost", "rnn", "--at", "steps=2,h=3,c=2", "--check", "--json").out)
    assert data["equal"] and data["rows"][2]["counted"] == 2 * 3 * (2 + 3)  # multiplies


def test_check_says_no(lattend, monkeypatch):
    from lattend.cost.reference import nets

    monkeypatch.setattr(nets, "plus", lambda left, right: left)  # a linear map that forgets its bias
    ran = lattend("cost", "linear", "--at", "n=2,d_in=3,d_out=4", "--check")
    assert ran.code == 1
    rows = [line.split() for line in ran.out.splitlines()]
    assert ["24", "16", "differs"] in [row[-3:] for row in rows]  # adds: 2*4*(3 - 1), the 8 biases are gone


def test_a_check_that_cannot_run(lattend):
    ran = lattend("cost", "rnn2d", "--at", "n=100,h=32,c=3", "--check")
    assert (ran.code, ran.out) == (3, "")
    assert "and a run at most 1,000,000; give smaller sizes" in ran.err


def test_claims_rename_letters(lattend):
    text = "parameters: N_h*D_i*(2D_hid + D_o) + N_h*D_o*D_out + D_out"
    layer = "attention(D_o=D_o, D_out=D_out)"
    ran = lattend("cost", layer, "--claim", text, "--rename", "N_h=heads", "--json")
    assert ran.code == 0
    assert json.loads(ran.out)[0]["status"] == "holds"


def test_other_forms(lattend, tmp_path):
    assert lattend("cost", "rnn2d", "--order", "multiplies").out == "O(n^2*c*h + n^2*h^2)\n"
    assert lattend("cost", "rnn2d", "--latex", "depth").out == "2n - 1\n"
    data = json.loads(lattend("cost", "rnn2d(n=2, h=3, c=4)", "--json").out)
    assert data["multiplies"] == {"needed": 84, "executed": 120, "dense": 120}  # 4*12 + 2*2*9, 4*(12 + 18)
    back = lattend("cost", "linear(n=2, d_in=3, d_out=4)", "--backward").out
    assert back.startswith("linear, backward pass") and "multiplies 48" in " ".join(back.split())
    data = json.loads(lattend("cost", "linear(n=2, d_in=3, d_out=4)", "--backward", "--json").out)
    assert (data["way"], data["multiplies"]["needed"], data["depth"]) == ("backward", 48, 1)
    file = tmp_path / "vit.svg"
    ran = lattend("cost", "vit", "--out", str(file))
    assert ran.out == f"{file}: Multiplies of vit\n"
    assert "11,154,751,488" in file.read_text()


def test_a_model(lattend, tmp_path):
    file = tmp_path / "config.json"
    sizes = {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}
    file.write_text(json.dumps({"model_type": "gpt2", **sizes}))
    ran = lattend("cost", str(file), "--length", "1024")
    assert ran.code == 0
    assert "124,439,808" in ran.out
    # 2 * 12 layers * 768 * 1024 tokens * 2 bytes
    assert "37,748,736" in ran.out and "36 MiB" in ran.out
    assert ran.out.count("gpt2") == 3  # one heading a table
    data = json.loads(lattend("cost", str(file), "--length", "1024", "--json").out)
    assert data["cache"] == data["serving"]["cache_bytes"]["bf16"] == 37_748_736
    trained = lattend("cost", str(file), "--length", "1024", "--training").out
    assert "KV cache: 37,748,736 bytes (36 MiB), at 2 bytes a number" in trained and "serving" not in trained


def test_a_model_to_serve(lattend, tmp_path):
    (tmp_path / "tiny").mkdir()
    sizes = {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}
    (tmp_path / "tiny" / "config.json").write_text(json.dumps({"model_type": "gpt2", **sizes}))
    asked = ["cost", str(tmp_path / "tiny"), "--rule", "strided(127)", "--layers", "0-10:2, 11"]
    ran = lattend(*asked, "--machine", "flops=1T,bandwidth=100GB/s,memory=1GB", "--machines", "2")
    assert ran.code == 0
    assert ran.out.startswith("gpt2, serving on 2 × your machine: context 1,024, 1 sequence\n")
    assert " strided(127)\n" in ran.out and "its own attention  in 7 of 12 layers" in ran.out
    # 5 layers keep 1,024 tokens and 7 keep 128, of 2 * 768 numbers of 2 bytes
    assert "17.6 MiB" in ran.out
    picture = tmp_path / "serving.svg"
    data = json.loads(lattend(*asked, "--draw", str(picture), "--weights", "int4", "--json").out)
    assert data["prices"][1]["cache_bytes"] == (5 * 1024 + 7 * 128) * 2 * 768 * 2
    assert data["weights"] == "int4" and data["file"] == str(picture)
    assert "Prefill, seconds" in picture.read_text()


def test_a_folder_that_is_called_as_a_layer(lattend, tmp_path, monkeypatch):
    (tmp_path / "linear").mkdir()
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    assert lattend("cost", "linear").out.startswith("linear in ")
    assert lattend("cost", "models").err == (
        'lattend: the folder "models" holds no config.json; give the path of a config.json, or of the folder '
        "that holds it\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--machine", "H1"], 'no machine is named "H1"; there are H200, H100, A100, L40S, MI300X, laptop'),
        (["--machine", "flops=1T"], "does not say bandwidth"),
        (["--layers", "1"], "--layers says in which layers a rule is: give --rule too"),
        (["--rule", "causal", "--layers", "1,b"], "--layers are numbers from 0, as in 0-5,10 or 0-31:2"),
        (["--rule", "causal", "--layers", "2"], "there is no layer 2; layers are 0 to 1"),
        (["--training", "--weights", "fp8"], "--weights is about serving and does not go with --training"),
        (["--weights", "q4"], 'no format of weights is named "q4"; there are fp32, bf16'),
        (["--draw", "x.gif"], "the ending is not one of .svg, .png, .pdf"),
    ],
)
def test_what_serving_refuses(lattend, tmp_path, arguments, said):
    file = tmp_path / "config.json"
    sizes = {"n_embd": 4, "n_layer": 2, "n_head": 2, "vocab_size": 11, "n_positions": 8}
    file.write_text(json.dumps({"model_type": "gpt2", **sizes}))
    ran = lattend("cost", str(file), *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_an_encoder_with_a_decoder(lattend, tmp_path):
    file = tmp_path / "config.json"
    sizes = {"vocab_size": 53, "d_model": 24, "d_kv": 7, "d_ff": 37, "num_layers": 3, "num_heads": 4}
    file.write_text(json.dumps({"model_type": "t5", **sizes}))
    assert lattend("cost", str(file)).out.startswith(
        "t5: language model, head shared with the table; encoder"
    )
    ran = lattend("cost", str(file), "--length", "8", "--encoder-length", "16")
    assert "t5, forward, encoder length 16, length 8" in ran.out
    # 3 layers of 2 * 28 numbers of 2 bytes: 8 tokens and 16 positions
    assert f"KV cache: {8 * 336:,} bytes (2.6 KiB); of the cross-attention: {16 * 336:,} bytes" in ran.out
    data = json.loads(lattend("cost", str(file), "--length", "8", "--training", "--json").out)
    assert (data["cache"], data["cross_cache"]) == (8 * 3 * 56 * 2, 8 * 3 * 56 * 2)
    refused = lattend("cost", str(file), "--length", "8", "--machine", "H100")
    assert (refused.code, "of which serving is not priced" in refused.err) == (2, True)
    sizes = {"vocab_size": 11, "n_positions": 8, "n_embd": 4, "n_layer": 2, "n_head": 2}
    file.write_text(json.dumps({"model_type": "gpt2", **sizes}))
    ran = lattend("cost", str(file), "--length", "8", "--encoder-length", "16")
    assert "--encoder-length is for an encoder with a decoder; gpt2 has --length alone" in ran.err


def test_a_model_that_decodes_nothing_has_no_cache(lattend, tmp_path):
    file = tmp_path / "config.json"
    sizes = {"hidden_size": 192, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 768}
    file.write_text(json.dumps({"model_type": "vit", **sizes, "image_size": 224, "patch_size": 16}))
    ran = lattend("cost", str(file), "--length", "197")
    assert (ran.code, "KV cache" in ran.out) == (0, False)
    assert json.loads(lattend("cost", str(file), "--length", "197", "--json").out)["cache"] is None
    assert "KV cache" not in lattend("cost", "vit").out
    assert "KV cache" in lattend("cost", "decoder").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["foo"], "no layer is named foo"),
        (["rnn2d", "--at", "q=3"], "rnn2d has no q; it has n, c, h"),
        (["rnn2d", "--claim", "n^2"], '--claim: name the quantity too, as in "multiplies: n^2"'),
        (["rnn2d", "--claim", "speed: n"], "a cost has no speed; it has parameters"),
        (["rnn2d", "--length", "5"], "--length is for a config.json"),
        (["rnn2d", "--out", "x.svg"], "a chart needs a number for every size: give --at n=…,c=…,h=…"),
        (["rnn2d(n=2,h=1,c=1)", "--out", "x.gif"], "the ending is not one of .svg, .png, .pdf"),
        (["nothing.json"], 'there is no file or folder "nothing.json" here, and models are not looked up'),
        (["meta-llama/Llama-3.1-8B"], 'there is no file or folder "meta-llama/Llama-3.1-8B" here'),
        (["rnn2d", "--machine", "H100"], "--machine is for a config.json"),
        (["nothing.json", "--check"], "--check is for a layer, not for a model"),
        (["rnn2d", "--at", "n=4", "--check"], "a run needs a number for every size: give --at c=…,h=…"),
        (
            ["attention", "--check"],
            "a run needs a number for every size: give --at n=…,heads=…,D_hid=…,D_i=…",
        ),
        (["rnn2d", "--check", "--order", "adds"], "--order does not go with --check; ask for one of the two"),
        (["attention", "--rule", "caussal"], "caussal"),
    ],
)
def test_wrong_input(lattend, arguments, said):
    ran = lattend("cost", *arguments)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""


def test_check_of_attention(lattend):
    ran = lattend("cost", "attention", "--rule", "causal", "--at", "n=4,heads=2,D_i=3,D_hid=2", "--check")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("attention at n = 4, heads = 2, D_i = 3, D_hid = 2, run on numbers")
    assert ran.out.count("equal") == 9


def test_without_a_layer_all_are_listed(lattend):
    ran = lattend("cost")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("16 layers, their arguments and an example")
    assert '  lattend cost "rnn(steps=t, inputs=n, hidden=n, layers=l)"' in ran.out.splitlines()
    assert json.loads(lattend("cost", "--json").out)["rnn2d"]["arguments"]["cell"] == "rnn"
    assert "--at needs a layer, as in lattend cost rnn2d" in lattend("cost", "--at", "n=3").err


def test_a_kernel_is_a_letter(lattend):
    layer = "conv(rows=n, cols=n, kernel=k, c_in=d, c_out=d, padding=same, bias=false)"
    assert lattend("cost", layer, "--order", "multiplies").out == "O(n^2*d^2*k^2)\n"
    assert lattend("cost", layer, "--claim", "parameters: k^2 d^2").code == 0
    ran = lattend("cost", layer, "--at", "n=5,k=3,d=2", "--check")
    assert (ran.code, "differs" in ran.out) == (0, False)
    assert "d^2(4n*k - k^2 + 1)^2/16" in ran.out


def test_parameters_by_matrix(lattend):
    ran = lattend("cost", "attention(D_o=D_o, D_out=D_out)", "--parameters")
    assert (ran.code, ran.err) == (0, "")
    assert "the heads D_i*(2D_hid + D_o) heads*D_i*(2D_hid + D_o)" in " ".join(ran.out.split())
    boxes = {"one head": "D_i(2D_hid + D_o)", "W_out": "N_h D_o D_out", "b_out": "D_out"}
    claims = [part for box, formula in boxes.items() for part in ("--claim", f"{box}: {formula}")]
    assert lattend("cost", "attention", *claims).code == 0
    data = json.loads(lattend("cost", "rnn2d", "--at", "h=3,c=2", "--parameters", "--json").out)
    assert [row["numbers"] for row in data["rows"]] == [6, 9, 9] and data["total"] == 24
    said = "--order does not go with --parameters; ask for one of the two"
    assert said in lattend("cost", "rnn2d", "--parameters", "--order", "depth").err


def test_the_price_of_one_point(lattend):
    layer = "attention(encoding=absolute,projections=naive,D_i=D,D_hid=D,heads=1)"
    assert lattend("cost", layer, "--per", "score", "--claim", "operations: 16D^2 - 1").code == 0
    ran = lattend("cost", layer, "--per", "score", "--claim", "operations: 4(2D(2D-1)+D-1)")
    assert ran.code == 1 and "exactly (4D + 1)(4D - 1)" in ran.out
    ran = lattend("cost", "rnn2d", "--per", "cell")
    assert "multiplies h(2h + c) h(c + h) c*h" in " ".join(ran.out.split())
    claims = [part for c in ("inner multiplies: hc + 2h^2", "corner adds: h(c-1)") for part in ("--claim", c)]
    assert lattend("cost", "rnn2d", "--per", "cell", *claims).code == 0
    assert lattend("cost", "decoder(heads=1)", "--per", "step", "--order", "operations").out == (
        "O(n*d*l + d^2*l)\n"
    )
    assert json.loads(lattend("cost", "rnn", "--per", "cell", "--at", "h=3,c=2", "--json").out)["points"][
        "first layer"
    ]["multiplies"] == 3 * (3 + 2)
    assert "--backward does not go with --per" in lattend("cost", "rnn", "--per", "cell", "--backward").err


def test_nested_text_and_nested_files_get_one_clear_error(lattend, tmp_path):
    ran = lattend("cost", "(" * 50_000 + "n" + ")" * 50_000)
    assert ran.code == 2 and "it has 100,001 characters, and 10,000 are allowed; shorten it" in ran.err
    ran = lattend("cost", "rnn2d", "--claim", "(" * 50_000)
    assert ran.code == 2 and 'as in "multiplies: ((((' in ran.err and len(ran.err) < 2_000
    deep = tmp_path / "config.json"
    deep.write_text("[" * 100_000)
    for command in ("cost", "heads", "work"):
        ran = lattend(command, str(deep))
        assert ran.code == 2 and ran.err.endswith(" has too many brackets inside one another\n")


def test_a_claim_under_an_assumption(lattend):
    claim = (
        "cost",
        "attention",
        "--rule",
        "strided",
        "--at",
        "heads=1",
        "--claim",
        "exponentials: n(t+1) - t(t+1)/2",
    )
    assert lattend(*claim).code == 1  # a window longer than the sequence has fewer pairs
    ran = lattend(*claim, "--assume", "t <= n")
    assert ran.code == 0 and "holds for n >= 1 and t >= 0" in ran.out and ran.out.endswith("t <= n\n")
    assert lattend(*claim, "--assume", "t <= n", "--assume", "n >= 3").out.endswith("t <= n and n >= 3\n")
    ran = lattend("cost", "rnn", "--assume", "t <= 2")
    assert (
        ran.code == 2
        and ran.err == "lattend: --assume is what a claim may take for granted; give --claim too\n"
    )


def test_letters_for_arguments(lattend):
    letters = ("--at", "kernel=k,c_in=d,c_out=d,rows=s,cols=s")
    claim = "multiplies: d^2*k^2*(s - k + 1)^2"
    assert lattend("cost", "conv", *letters, "--claim", claim).code == 0
    written = lattend("cost", "conv(kernel=k, c_in=d, c_out=d, rows=s, cols=s)", "--claim", claim)
    assert lattend("cost", "conv", *letters, "--claim", claim).out == written.out
    short = lattend("cost", "conv", *letters, "--claim", "multiplies: O(k^2 d s^2)")  # d channels in, d out
    assert short.code == 1 and "fails" in short.out
    assert (
        lattend("cost", "rnn", "--at", "steps=n,inputs=d,hidden=d", "--claim", "multiplies: 2n d^2").code == 0
    )
    assert (
        lattend("cost", "rnn", "--at", "steps=t,inputs=d,hidden=d,layers=2", "--at", "d=3").out.count("36t")
        == 2
    )
    clash = lattend("cost", "rnn2d", "--at", "rows=h,cols=w")
    assert clash.code == 2 and "h would mean two sizes: rows of rnn2d, and h of rnn2d" in clash.err
    assert "rnn has no z" in lattend("cost", "rnn", "--at", "z=k").err
