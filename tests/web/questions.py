"""Questions for the tests: good ones from the pages and examples, with fields replaced by anything."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from lattend.web import export
from lattend.web.panel import Panel
from lattend.web.panels import PANELS
from lattend.web.panels.start import examples

Question = dict[str, Any]
# Texts that some reader takes, nearly takes, or should refuse
TEXTS = (
    *(
        "",
        " ",
        "causal",
        "strided",
        "k <= q and q - k <= t",
        "(q - k) % 3 == 0",
        "k <= q or k < p",
        "n(n+1)/2",
    ),
    *(
        "1",
        "0",
        "-1",
        "3/4",
        "0.5",
        "1e400",
        "1/0",
        "nan",
        "inf",
        "10**9",
        "9" * 60,
        "x",
        "p*q",
        "exp(x)",
        "x^x",
    ),
    *(
        "k <= ",
        "((((",
        "k <= q <= k",
        "q % 0 == k",
        "q // k",
        "∑_{i} i",
        "é",
        "\x00",
        "\u202e",
        "🦆",
        "__import__",
    ),
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.floats() | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("n", "t", "a", "")), inner),
    max_leaves=5,
)


# What each page asks, beside `read` of its rule
PANELS_OF = {
    "rule": "read other count claim keys growth reach field first_layers cache rules code same shared draw"
    " explain tile_map rule_cost",
    "price": "cost cost_claim cost_check compare tables model layers",
    "conv": "conv conv_leak conv_error conv_price conv_same",
    "grid": "grid grid_price grid_check grid_diagram",
    "patches": "patches patches_price",
    "scores": "scores",
    "work": "work check",
    "steer": "steer try_query",
    "elbo": "elbo elbo_discrete elbo_linear",
    "game": "game game_field game_outcome game_steps",
    "heads": "heads heads_moment heads_findings",
    "derive": "derive",
    "api": "start questions",
}
# A page asks these only once the field is filled
FILLED = {"other": "other", "same": "other", "shared": "other", "claim": "claim", "cost_claim": "claim"}
FILLED["check"] = "answer"
PART = {"top": 3, "left": 0, "height": 2, "width": 2, "rows": 6, "cols": 8}
# What a person goes on to: the state as the page begins says nothing of it
MORE: dict[str, list[Question]] = {
    "ask": [{"words": "autoregressive token i"}, {"words": "causl"}],
    "tiles": [
        {"rule": "strided", "numbers": {"n": 16, "t": 4}, **PART},
        {"rule": "causal", "other": "strided(t=2)", "numbers": {"n": 10**6}, **PART, "top": 400_000},
    ],
    "count": [{"rule": "causal", "numbers": {"n": "1" + "0" * 30}}],
    "claim": [{"rule": "strided", "claim": "t + 1", "per": "query", "assume": "t < n"}],
    "same": [{"rule": "not k > q", "other": "causal"}],
    "draw": [{"rule": "causal", "numbers": {"n": 8}}],
    "tile_map": [{"rule": "causal", "numbers": {"n": 4096}, "tiles_view": [0, 1024, 0, 1024]}],
    "cost": [
        {"layer": "rnn2d", "numbers": {"n": 8, "h": 3, "c": 3}},
        {"layer": "attention", "rule": "causal", "backward": True},
    ],
    "cost_claim": [
        {"layer": "rnn2d", "claim": "inner multiplies: h c + 2h^2", "per": "cell"},
        {"layer": "rnn2d", "claim": "multiplies: n^2 h^2"},
    ],
    "cost_check": [{"layer": "rnn2d"}],
    "check": [{"q": [["1"]], "k": [["1"]], "v": [["2"]], "answer": {"outputs": [[["2"]]]}}],
    "work": [{"q": [["1", "0"]], "k": [["1", "0"], ["0", "1"]], "v": [["1"], ["2"]]}],
}


def good_questions() -> dict[str, list[Question]]:
    """What the pages ask as they begin and in their examples, and what a person goes on to; by panel."""
    pages = json.loads(files("lattend.web").joinpath("static", export.PAGES).read_text("utf-8"))
    begins: dict[str, Question] = {page["name"]: page["state"] for page in pages}
    states = [
        *begins.items(),
        *((one.page, begins[one.page] | one.state) for one in examples() if one.page in begins),
    ]
    found: dict[str, list[Question]] = {name: list(MORE.get(name, ())) for name in PANELS}
    for page, state in states:
        for panel in PANELS_OF[page].split():
            fields = PANELS[panel].question.model_fields
            question = {name: state[name] for name in fields if name in state}
            if panel in FILLED and not state[FILLED[panel]]:
                continue
            if panel == "tile_map" and "rows" in state["numbers"]:  # mapped only on a line
                continue
            if question not in found[panel]:
                found[panel].append(question)
    return found


@st.composite
def questions(draw: st.DrawFn, panel: Panel, good: list[Question]) -> Question:
    """A good question in which a few fields hold something else of their kind, or anything."""
    schema = panel.question.model_json_schema()
    fields: dict[str, Any] = schema.get("properties", {})
    question = dict(draw(st.sampled_from(good or [{}])))
    changed = draw(st.lists(st.sampled_from([*fields]), max_size=2)) if fields else []
    for name in {*changed, *(name for name in schema.get("required", ()) if name not in question)}:
        of_its_kind = _values(fields[name], schema.get("$defs", {}))
        question[name] = draw(of_its_kind if draw(st.integers(0, 3)) else JUNK)
    if draw(st.integers(0, 30)) == 30:
        question["__proto__"] = draw(JUNK)
    return question


def _values(shape: dict[str, Any], known: dict[str, Any]) -> SearchStrategy[Any]:
    """Values that fit a JSON schema."""
    if "$ref" in shape:
        return _values(known[shape["$ref"].rpartition("/")[2]], known)
    if "enum" in shape:
        return st.sampled_from(shape["enum"])
    if "const" in shape:
        return st.just(shape["const"])
    if "anyOf" in shape:
        return st.one_of([_values(one, known) for one in shape["anyOf"]])
    least, most = shape.get("minimum"), shape.get("maximum")
    match shape.get("type"):
        case "string":
            return st.sampled_from(TEXTS) | st.text(max_size=12)
        case "integer":
            return st.integers(least if least is not None else -(10**6), most if most is not None else 10**12)
        case "number":
            return st.floats(least, most, allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case "array":
            size = {"min_size": shape.get("minItems", 0), "max_size": min(4, shape.get("maxItems", 4))}
            size["max_size"] = max(size["max_size"], size["min_size"])
            return st.lists(_values(shape.get("items", {}), known), **size)
        case "object" if "properties" in shape:
            return st.fixed_dictionaries({n: _values(s, known) for n, s in shape["properties"].items()})
        case "object":
            inner = shape.get("additionalProperties")
            names = st.sampled_from(("n", "t", "w", "rows", "", "n!", "a b"))
            return st.dictionaries(
                names, _values(inner, known) if isinstance(inner, dict) else JUNK, max_size=3
            )
        case _:
            return JUNK
