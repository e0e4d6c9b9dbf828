"""Signs that are not ASCII, spelt and in TeX."""

from PIL import Image, ImageDraw, ImageFont

from lattend.draw.formats.png import IN_FONT
from lattend.draw.formats.scene import spelt
from lattend.draw.formats.signs import SIGNS, TEX


def test_every_sign_can_be_spelt():
    for sign in SIGNS:
        assert not sign.isascii()
        assert spelt(sign, "ascii").isascii() and "?" not in spelt(sign, "ascii")
        assert spelt(sign, "utf-8") == sign
        assert TEX[sign].isascii()


def test_spelt_as_people_say_them():
    assert spelt("β ≤ 2π, ‖∇f‖ → 0", "ascii") == "beta <= 2pi, |gradient f| -> 0"


def test_the_png_font_has_what_is_said_of_it():
    font = ImageFont.load_default(20)
    missing = pixels(font, "\u0378")  # no letter has this place
    for sign in SIGNS:
        assert (sign in IN_FONT) == (pixels(font, sign) != missing)


def pixels(font, sign):
    image = Image.new("L", (40, 40))
    ImageDraw.Draw(image).text((5, 5), sign, 255, font)
    return image.tobytes()
