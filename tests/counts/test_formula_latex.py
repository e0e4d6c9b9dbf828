"""A claim is shown as it was read: brackets where they are needed, none where they are not."""

from __future__ import annotations

from pickle import dumps, loads

import pytest

from lattend.counts.formula_parser import parse_claim
from lattend.counts.latex import claim_latex, maths
from lattend.report.maths import Maths, Sentence

WRITTEN = {
    "n(n+1)/2": r"\frac{n (n + 1)}{2}",
    "N = 1 + 2 + ... + n": r"N = \sum_{i=1}^{n} i",
    "-t^2/2 - t/2 + nt + n": r"-\frac{t^{2}}{2} - \frac{t}{2} + n t + n",
    "n - (t - 1)": "n - (t - 1)",
    "n - t - 1": "n - t - 1",
    "(-n)^2": "(-n)^{2}",
    "-n^2": "-n^{2}",
    "2*3*n": r"2 \cdot 3 n",
    "n // w + n % w": r"\left\lfloor n / w \right\rfloor + (n \bmod w)",
    r"\sum_{i=1}^{t+1} i + \sum_{i=t+2}^{n} (t + 1)": (r"\sum_{i=1}^{t + 1} i + \sum_{i=t + 2}^{n} (t + 1)"),
    "n*sum(i, i, 1, n)": r"n (\sum_{i=1}^{n} i)",
    "min(n, t + 1)": r"\min\left(n, t + 1\right)",
    "Theta(n*t)": r"\Theta\left(n t\right)",
    "N_h D_hid": r"N_{\mathrm{h}} D_{\mathrm{hid}}",
    "1/2": r"\frac{1}{2}",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_a_claim_is_written_as_it_was_read(text: str) -> None:
    assert claim_latex(parse_claim(text, {"n", "t", "w"})) == WRITTEN[text]


PRINTED = {
    "n*d^2*k^2 - d^2(k + 1)/16": r"n d^{2} k^{2} - \frac{d^{2} (k + 1)}{16}",
    "O(n*d^2 + n^2*d)": r"O\left(n d^{2} + n^{2} d\right)",
    "⌈2(s - 1)/(k - 1)⌉": r"\left\lceil \frac{2 (s - 1)}{k - 1} \right\rceil",
    "heads*D_hid": r"\mathrm{heads} \, D_{\mathrm{hid}}",
    "d < t + 1 <= 2d": r"d < t + 1 \le 2 d",
    "n = (d + sqrt(d^2 + 4))/2": r"n = \frac{d + \sqrt{d^{2} + 4}}{2}",
    "1 - h^2/2 ± h*sqrt(h^2 - 4)/2": r"1 - \frac{h^{2}}{2} \pm \frac{h \, \sqrt{h^{2} - 4}}{2}",
    "f' - f = -h*(p + q)*(p - q)": "f' - f = -h (p + q) (p - q)",
    "sqrt(2)/2 = 0.7071": r"\frac{\sqrt{2}}{2} = 0.7071",
}


@pytest.mark.parametrize("text", PRINTED)
def test_what_is_printed_has_its_latex(text: str) -> None:
    found = maths(text)
    assert (found, getattr(found, "latex", "")) == (text, PRINTED[text])


@pytest.mark.parametrize("text", ["(n > 3 or d = 2) and n = 1", "0.5*n", "2sin(pi/6)", ")", "sqrt(", ""])
def test_what_is_no_formula_stays_a_text(text: str) -> None:
    assert maths(text) == text and not isinstance(maths(text), Maths)


def test_formulas_go_through_a_process_with_their_latex() -> None:
    held = Sentence("at ", maths("n = 3"))
    assert [getattr(part, "latex", "") for part in loads(dumps(held)).parts] == ["", "n = 3"]
