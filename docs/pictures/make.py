"""Draws the pictures of the README and the docs: `make pictures`. A test compares them with the code."""

from __future__ import annotations

from pathlib import Path

import lattend as lt

HERE = Path(__file__).parent


def pictures() -> dict[str, lt.Picture]:
    """Each file's name and its picture."""
    rules = lt.rules
    return {
        "causal.svg": rules.causal().draw(n=12),
        "strided.svg": rules.strided(3).draw(n=12),
        "windowed.svg": rules.windowed(4).draw(n=12),
        "compared.svg": rules.strided(3).draw(n=12, compare=rules.windowed(4)),
        "sparse_fixed.svg": rules.sparse_fixed(4, 1).draw(n=16),
        "neighbourhood.svg": rules.neighbourhood(2).draw(rows=9, cols=9, pixel=(1, 4)),
        "million.svg": rules.sinks(60_000, 90_000).draw(n=1_000_000),
    }


if __name__ == "__main__":
    for name, picture in pictures().items():
        print(picture.save(HERE / name).name)
