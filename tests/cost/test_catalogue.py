"""The list of layers: all of them, with arguments that they take and examples that can be priced."""

import pytest

import lattend as lt
from lattend.cost.reader import from_text, layer_names

LAYERS = lt.cost.catalogue()


def test_every_layer_is_there():
    assert list(LAYERS.entries) == layer_names()
    printed = str(LAYERS)
    for entry in LAYERS.entries.values():
        assert f"{entry.name}: {entry.about}" in " ".join(printed.split())
        assert f'lattend cost "{entry.example}"' in printed


@pytest.mark.parametrize("name", list(LAYERS.entries))
def test_examples_are_priced(name):
    assert str(from_text(LAYERS[name].example).parameters)


@pytest.mark.parametrize("name", list(LAYERS.entries))
def test_signatures_are_taken(name):
    """What is listed as an argument can be typed as one, with the value that it has by default."""
    told = LAYERS[name].signature
    open_ = [part for part in told.split(", ") if "=" not in part]
    assert from_text(f"{name}({', '.join(f'{part}={part}' for part in open_)})").recipes[0][1].name == name
    for part in told.split(", "):
        word, _, value = part.partition("=")
        assert word in LAYERS[name].arguments
        if value in ("true", "false") or value.isdigit():
            assert from_text(f"{name}({part})").parameters is not None


def test_a_layer_with_its_number_on_either_side():
    for text in ("l * attention(n=t, heads=1)", "attention(n=t, heads=1) * l"):
        assert str(from_text(text).depth) == "l"
    both = [from_text(text).multiplies for text in ("2 * rnn * 3", "rnn * 6", "6 * rnn")]
    assert len(set(map(str, both))) == 1
    with pytest.raises(lt.errors.TextError, match=r"layers follow each other with \+"):
        from_text("attention * rnn")
    with pytest.raises(lt.errors.TextError, match="no layer is named l; there are"):
        from_text("l * 3")


def test_a_mistyped_layer_is_pointed_at_on_either_side():
    for text in ("attntion * l", "l * attntion"):
        with pytest.raises(
            lt.errors.TextError, match=r"no layer is named attntion; .* Did you mean attention\?"
        ):
            from_text(text)
