"""Signs that are not ASCII, spelt and in TeX."""

from lattend.draw.scene import spelt
from lattend.draw.signs import SIGNS, TEX


def test_every_sign_can_be_spelt():
    for sign in SIGNS:
        assert not sign.isascii()
        assert spelt(sign, "ascii").isascii() and "?" not in spelt(sign, "ascii")
        assert spelt(sign, "utf-8") == sign
        assert TEX[sign].isascii()


def test_spelt_as_people_say_them():
    assert spelt("β ≤ 2π, ‖∇f‖ → 0", "ascii") == "beta <= 2pi, |gradient f| -> 0"
