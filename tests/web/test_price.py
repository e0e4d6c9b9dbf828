"""Prices on the page are the library's, exactly; what cannot be priced is said in words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cost.models.published import PUBLISHED
from hypothesis import given, settings
from hypothesis import strategies as st
from web.page_texts import text_of

import lattend as lt
from lattend.cost.comparison import compare
from lattend.cost.comparison.defaults import read_layers
from lattend.cost.models import config
from lattend.cost.models.serving_price import run_time
from lattend.cost.reader import from_text, layer_names
from lattend.machines import compared_machines
from lattend.web.panels import cost as cost_panel
from lattend.web.panels.cost import models
from lattend.web.worker import LATE, reply

T5 = {
    "model_type": "t5",
    "vocab_size": 9,
    "d_model": 4,
    "d_kv": 2,
    "d_ff": 8,
    "num_layers": 1,
    "num_heads": 2,
}
NUMBERS = {"n": 4096, "t": 255, "heads": 8, "D_hid": 64, "D_i": 512}


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Formulas are written out, however busy the machine is."""
    monkeypatch.setattr(cost_panel, "FORMULAS_DEADLINE", 60.0)


def ask(panel: str, **question: Any) -> tuple[int, dict[str, Any]]:
    status, _, body = reply(panel, "", json.dumps(question).encode())
    return status, json.loads(body)


def answer(panel: str, **question: Any) -> dict[str, Any]:
    status, found = ask(panel, **question)
    assert status == 200, found
    return found


def rows(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in [*found["work"], *found["memory"]]}


@pytest.mark.parametrize("layer", layer_names())
def test_formulas_are_the_librarys(layer: str) -> None:
    found, cost = answer("cost", layer=layer), from_text(layer)
    assert [letter["name"] for letter in found["letters"]] == list(cost.names)
    for name, row in rows(found).items():
        if row["words"]:
            assert cost.names and getattr(cost, name) is None
            continue
        value = cost.value(name)
        assert row["formulas"][0]["text"] == (f"{value:,}" if isinstance(value, int) else str(value))


def test_numbers_are_needed_executed_and_dense() -> None:
    found = answer("cost", layer="attention(strided)", numbers=NUMBERS)
    cost = from_text("attention(strided)", NUMBERS)
    assert found["numbers"] == ["needed", "executed", "dense"]
    assert rows(found)["multiplies"]["numbers"] == [f"{value:,}" for value in cost.columns("multiplies")]
    assert rows(found)["peak_activations"]["numbers"] == [f"{cost.peak_activations:,}"]
    assert rows(found)["path"]["numbers"] == [str(cost.path)]
    assert rows(found)["multiplies"]["formulas"][0]["text"] == str(from_text("attention(strided)").multiplies)
    assert [time["machine"] for time in found["times"]] == [one.name for one in compared_machines()]
    assert found["times"][-1]["time"] in str(cost.time("H200 measured"))


def test_formulas_that_take_too_long_are_left_out_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_panel, "FORMULAS_DEADLINE", 0.0)
    cost_panel.KNOWN.clear()
    status, found = ask("cost", layer="attention(windowed)")
    assert (status, found["late"]) == (LATE, True)
    assert [row["name"] for row in found["work"]] == ["parameters"]
    assert cost_panel.LONG in found["notes"]
    monkeypatch.undo()
    assert len(answer("cost", layer="attention(windowed)")["work"]) > 1


def test_a_backward_pass_and_a_mask() -> None:
    found = answer("cost", layer="attention", rule="causal", backward=True)
    cost = from_text("attention", {"rule": "causal"}).backward
    assert rows(found)["multiplies"]["formulas"][0]["text"] == str(cost.multiplies)
    assert found["memory"] == []
    assert found["copies"]["command"] == "lattend cost attention --rule causal --backward"


def test_numbers_of_another_layer_wait() -> None:
    found = answer("cost", layer="rnn2d", numbers={"heads": 8, "h": 3})
    assert rows(found)["multiplies"]["formulas"][0]["text"] == str(lt.cost.rnn2d(h=3).multiplies)
    assert found["copies"]["command"] == "lattend cost rnn2d --at h=3"


@pytest.mark.parametrize(("layer", "per"), [("rnn2d", "cell"), ("attention", "score"), ("decoder", "step")])
def test_the_price_of_one_point(layer: str, per: str) -> None:
    found, points = answer("cost", layer=layer, per=per), from_text(layer).per(per)
    assert found["columns"] == list(points.costs)
    (row,) = [row for row in found["work"] if row["name"] == "multiplies"]
    assert [cell["text"] for cell in row["formulas"]] == [
        str(cost.multiplies) for cost in points.costs.values()
    ]
    at = answer("cost", layer=layer, per=per, numbers=dict.fromkeys(from_text(layer).names, 3))
    (row,) = [row for row in at["work"] if row["name"] == "multiplies"]
    names = from_text(layer).names
    numbers = points.at(**{n: 3 for n in names if any(n in c.names for c in points.costs.values())})
    assert row["numbers"] == [f"{cost.total('multiplies'):,}" for cost in numbers.costs.values()]


def test_a_claim_is_decided_as_the_library_does() -> None:
    right = answer("cost_claim", layer="rnn2d", claim="multiplies: n^2 h c + 2n(n - 1)h^2")["verdict"]
    assert right["status"] == "holds"
    wrong = answer("cost_claim", layer="rnn2d", claim="multiplies: n^2 h^2")
    assert wrong["verdict"]["sentence"] == str(lt.cost.rnn2d().claim("multiplies", "n^2 h^2"))
    cell = answer("cost_claim", layer="rnn2d", per="cell", claim="inner multiplies: h c + 2h^2")
    assert cell["verdict"]["status"] == "holds"
    assert cell["copies"]["command"] == "lattend cost rnn2d --per cell --claim 'inner multiplies: h c + 2h^2'"


@pytest.mark.parametrize("layer", layer_names())
def test_every_layer_counts_itself_at_small_sizes(layer: str) -> None:
    status, found = ask("cost_check", layer=layer)
    if layer == "vit":  # every size is a number, and a large one
        assert status == 422
        return
    assert status == 200, found
    assert found["equal"]


def test_copies_run_as_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        answer("cost", layer="attention", rule="causal", numbers={"n": 8}),
        answer("cost", layer="rnn2d", per="cell"),
        answer("cost_claim", layer="rnn2d", claim="multiplies: n"),
        answer("cost_check", layer="rnn2d"),
        answer("compare", layers=["rnn", "attention"], over="t", numbers={"d": 8}, span=[4, 64]),
        answer("compare", layers=["lstm", "attention"], column="dense", equal=True, numbers={"d": 8}),
        answer("model", config=PUBLISHED["gpt2"][0], length=64, training=True),
        answer("tables"),
    ]
    for one in asked:
        exec(one["copies"]["python"], {})
        assert one["copies"]["command"].startswith("lattend co") or "training" in one["copies"]["python"]
    printed = capsys.readouterr().out
    assert str(from_text("attention", {"rule": "causal", "n": 8})) in printed
    assert str(config(PUBLISHED["gpt2"][0]).training(64)) in printed


def test_pictures_are_the_librarys() -> None:
    question = {"layers": ["rnn", "attention(causal, projections=none)"], "over": "t", "numbers": {"d": 512}}
    status, media, body = reply("compare", "svg", json.dumps(question).encode())
    assert (status, media) == (200, "image/svg+xml")
    assert "t = 1,023" in body.decode()
    status, media, body = reply("cost", "png", json.dumps({"layer": "vit"}).encode())
    assert (status, media, body[1:4]) == (200, "image/png", b"PNG")
    status, _, body = reply("cost", "svg", b'{"layer": "rnn"}')
    assert status == 422
    assert "a chart needs a number for every size" in json.loads(body)["message"]


def test_curves_are_the_comparisons() -> None:
    texts = ["rnn", "attention(causal, projections=none)"]
    found = answer("compare", layers=texts, over="t", numbers={"d": 512, "heads": 3}, span=[16, 5000])
    named = read_layers(texts, "t")
    compared = compare(named.costs, over="t", at={"d": 512, "t": [16, 5000]})
    sizes = [int(size) for size in found["sizes"]]
    assert (sizes[0], sizes[-1]) == (16, 5000)
    for layer in found["layers"]:
        assert layer["texts"] == [f"{value:,}" for value in compared.values(layer["label"], sizes)]
    assert text_of(found["sentences"][0]) == str(compared.crossovers[0]) == compared.crossing_lines[0]
    (crossing,) = found["crossings"]
    assert (crossing["x"], crossing["text"]) == (1023.0, "t = 1,023")
    assert crossing["y"] == pytest.approx(compared.values("rnn", [1023])[0])


def test_a_curve_beyond_the_numbers_of_javascript_is_exact() -> None:
    found = answer("compare", layers=["rnn", "attention"], numbers={"d": 10**9}, span=[1, 2**60])
    assert found["layers"][0]["texts"][-1] == f"{2 * 10**18 * 2**60:,}"


def test_numbers_of_sixty_digits() -> None:
    huge = dict.fromkeys(("d", "t"), "9" * 59)
    found = answer("compare", layers=["rnn", "attention(strided)", "decoder(n=n, d=d)"], numbers=huge)
    assert found["layers"][0]["texts"][-1] == f"{2 * int('9' * 59) ** 2 * int(found['sizes'][-1]):,}"
    found = answer("cost", layer="attention(strided)", numbers={**NUMBERS, "n": str(10**30)})
    assert "not listed" in rows(found)["multiplies"]["numbers"][1]


def test_a_classifier_makes_no_tokens() -> None:
    fields = {**PUBLISHED["Meta-Llama-3-8B"][0], "architectures": ["LlamaForSequenceClassification"]}
    found = answer("model", config=fields, length=500, batch=2)
    assert {time["token"] for time in found["times"]} == {""}


@pytest.mark.parametrize("name", PUBLISHED)
def test_models_are_the_librarys(name: str) -> None:
    fields, parameters, _ = PUBLISHED[name]
    model = config(fields)
    length = model.image or 500
    found = answer("model", config={**fields, "torch_dtype": "bfloat16"}, length=length, batch=2)
    work = model.forward(length, batch=2)
    assert found["parameters"] == f"{parameters:,}"
    assert found["multiply_adds"] == [f"{value:,}" for value in work.multiply_adds]
    assert sum(part["share"] for part in found["parts"]) == pytest.approx(1)
    assert "torch_dtype" not in found["config"]
    assert found["times"][-1]["run"] in str(run_time(work, "H200 measured"))
    assert all(time["about"].startswith("data sheet: ") for time in found["times"][:-1])
    again = answer("model", config=found["config"], length=length, batch=2)
    assert again["parameters"] == found["parameters"]


def test_named_models_are_those_that_were_published() -> None:
    known = {parameters for _, parameters, _ in PUBLISHED.values()}
    for model in models():
        assert config(model.config).parameters in known, model.name


@pytest.mark.parametrize(
    ("panel", "question", "message"),
    [
        ("cost", {"layer": ""}, "write a layer"),
        ("cost", {"layer": "cnn"}, "Did you mean conv"),
        ("cost", {"layer": "rnn" + "(" * 1900}, ""),
        ("cost", {"layer": "attention(causal)", "rule": "full"}, "has a rule already"),
        ("cost", {"layer": "rnn", "per": "score"}, "a score is of one layer"),
        ("cost", {"layer": "rnn", "numbers": {"t": -3}}, ""),
        ("cost_claim", {"layer": "rnn2d", "claim": "n^2"}, "write the quantity, a colon"),
        ("cost_claim", {"layer": "rnn2d", "claim": "flops: n^2"}, "Did you mean operations"),
        ("cost_claim", {"layer": "rnn2d", "claim": "multiplies: " + "(" * 1900}, ""),
        ("cost_check", {"layer": "vit"}, ""),
        ("compare", {"layers": ["rnn"]}, "two layers or more"),
        ("compare", {"layers": ["rnn", "conv"], "over": ""}, ""),
        ("compare", {"layers": ["rnn", "conv"], "over": "(("}, ""),
        ("compare", {"layers": ["rnn(steps=8)", "rnn(steps=9)"], "over": "z"}, "none of these has z"),
        ("compare", {"layers": ["rnn", "conv"], "quantity": "flops"}, "Did you mean operations"),
        ("compare", {"layers": ["rnn", "conv"], "span": [8, 8]}, "grow from"),
        ("compare", {"layers": ["rnn", "conv"], "span": [0, 10**40]}, "grow from"),
        ("model", {"config": {}}, 'its family is not known; add it, as in "model_type": "llama"'),
        ("model", {"config": {"model_type": "mamba"}}, "not known"),
        (
            "model",
            {"config": T5},
            "t5 is an encoder and a decoder, and has two lengths; in a terminal, lattend",
        ),
        ("model", {"config": {"model_type": "llama"}}, 'has no "hidden_size", which llama needs; add it'),
        ("model", {"config": {"model_type": ["llama"]}}, "model_type"),
        ("model", {"config": {"model_type": "gpt2", "n_layer": 10**9}}, ""),
        ("model", {"config": PUBLISHED["gpt2"][0] | {"n_layer": 10**9}}, "layers up to 10,000"),
        ("model", {"config": PUBLISHED["gpt2"][0], "length": 2000}, "1,024 learned positions"),
    ],
)
def test_what_cannot_be_priced_is_said(panel: str, question: dict[str, Any], message: str) -> None:
    status, found = ask(panel, **question)
    assert status == 422
    assert found["kind"] in ("input", "no answer")
    assert message in found["message"]
    assert "config(" not in found["message"]  # the page's people write no Python


def test_a_mistake_in_a_layer_is_pointed_at() -> None:
    _, found = ask("cost", layer="rnn(stepz=3)")
    assert (found["field"], found["text"][found["start"] : found["end"]]) == ("layer", "stepz")
    assert [fix["text"] for fix in found["fixes"]] == ["rnn(steps=3)"]
    _, found = ask("cost", layer="l * cnn(kernel=3)")
    assert [fix["text"] for fix in found["fixes"]] == ["l * conv(kernel=3)"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**12) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from([*PUBLISHED]))
def test_any_json_is_data(data: st.DataObject, name: str) -> None:
    fields = dict(PUBLISHED[name][0])
    for field in data.draw(st.lists(st.sampled_from([*fields]), max_size=3)):
        fields[field] = data.draw(json_values)
    status, found = ask("model", config=fields, length=data.draw(st.integers(1, 10**6)))
    assert status == 200 or found["kind"] == "input", found


def test_a_letter_without_a_number_stands_at_the_same_one_everywhere() -> None:
    layers = ["linear(d_in=d, d_out=d)", "attention(causal)"]
    known = {letter["name"]: letter["example"] for letter in answer("cost", layer=layers[0])["letters"]}
    compared = {letter["name"]: letter["example"] for letter in answer("compare", layers=layers)["letters"]}
    assert compared["d"] == known["d"]
    assert known["n"] == answer("rule_cost", rule="causal")["at"]["n"]
