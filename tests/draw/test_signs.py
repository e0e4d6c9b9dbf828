"""Signs that are not ASCII: spelt, in TeX, and in the font of PNG and PDF."""

import re
import zlib

import pytest
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.textpath import TextPath

import lattend as lt
from lattend.draw.formats.page import FONT
from lattend.draw.formats.scene import Text, spelt, text_width
from lattend.report.signs import SIGNS, TEX


def test_every_sign_can_be_spelt():
    for sign in SIGNS:
        assert not sign.isascii()
        assert spelt(sign, "ascii").isascii() and "?" not in spelt(sign, "ascii")
        assert spelt(sign, "utf-8") == sign
        assert TEX[sign].isascii()


def test_spelt_as_people_say_them():
    assert spelt("β ≤ 2π, ‖∇f‖ → 0", "ascii") == "beta <= 2pi, |gradient f| -> 0"


@pytest.mark.parametrize("weight", ["normal", "bold"])
def test_the_font_of_png_and_pdf_has_every_sign(weight):
    font = get_font(findfont(FontProperties(family=FONT, weight=weight), fallback_to_default=False))
    assert [sign for sign in (*SIGNS, *"–₀₁₂⁰¹⁶⁻") if ord(sign) not in font.get_charmap()] == []


def test_a_pdf_has_greek_and_subscripts_as_letters():
    """Each letter of the text has its place in the table from glyphs back to Unicode."""
    data = lt.rule("k <= q").draw(n=2, title="Δ α₁ √ × ≤").pdf()
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL)
    tables = b"".join(zlib.decompress(part) for part in streams if part[:1] == b"x")
    for sign in "Δα₁√×≤":
        assert f"<{ord(sign):04x}>".encode() in tables.lower()


@pytest.mark.parametrize("n", [12, 40_000])
def test_words_have_room_in_the_font_of_png_and_pdf(n):
    """What layout takes a text to need is about what it needs, else words would run into each other."""
    for rule in (lt.rules.strided(3), lt.rules.sinks(2, 5), lt.rule("k <= q and (q - k) % 3 == 0")):
        for item in rule.draw(n=n).scene.items:
            if isinstance(item, Text) and len(item.text) > 3:
                font = FontProperties(family=FONT, weight="bold" if item.bold else "normal")
                drawn = TextPath((0, 0), item.text, size=item.size, prop=font).get_extents().width
                assert drawn <= 1.06 * text_width(item.text, item.size, item.bold), item.text
