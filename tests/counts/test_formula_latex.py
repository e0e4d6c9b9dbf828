"""A claim is shown as it was read: brackets where they are needed, none where they are not."""

from __future__ import annotations

import pytest

from lattend.counts.claim_parser import parse_claim
from lattend.counts.formula_latex import claim_latex

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
