"""Signs: how those that are not ASCII are spelt where they cannot be written, and how TeX writes them."""

from __future__ import annotations

_GREEK = {
    **{"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "Δ": "Delta", "ε": "epsilon", "θ": "theta"},
    **{"λ": "lambda", "μ": "mu", "π": "pi", "ρ": "rho", "σ": "sigma", "ψ": "psi"},
}

# sign: spelt in ASCII, TeX in mathematics
SIGNS: dict[str, tuple[str, str]] = {
    **{sign: (name, rf"\{name}") for sign, name in _GREEK.items()},
    "×": ("x", r"\times"),
    "−": ("-", "-"),
    "±": ("+-", r"\pm"),
    "·": (".", r"\cdot"),
    "≤": ("<=", r"\le"),
    "≥": (">=", r"\ge"),
    "≈": ("about ", r"\approx"),
    "→": ("->", r"\to"),
    "∞": ("infinity", r"\infty"),
    "√": ("sqrt ", r"\surd"),
    "∇": ("gradient ", r"\nabla"),
    "∂": ("d", r"\partial"),
    "Σ": ("sum ", r"\sum"),
    "‖": ("|", r"\Vert"),
    "½": ("1/2", r"\frac12"),
    "≠": ("!=", r"\ne"),
    "⌊": ("floor(", r"\lfloor"),
    "⌋": (")", r"\rfloor"),
    "⌈": ("ceil(", r"\lceil"),
    "⌉": (")", r"\rceil"),
    "\u0303": ("~", r"^{\sim}"),  # above the letter before it
    "⁰": ("^0", "^0"),
    "²": ("^2", "^2"),
    "³": ("^3", "^3"),
    "ᵀ": ("^T", "^{T}"),
    "ᵢ": ("_i", "_i"),
    "₁": ("_1", "_1"),
    "₂": ("_2", "_2"),
    "…": ("...", r"\ldots"),
}
SPELLINGS = str.maketrans({sign: spelling for sign, (spelling, _) in SIGNS.items()} | {"–": "-"})
TEX = {sign: rf"\ensuremath{{{tex}}}" for sign, (_, tex) in SIGNS.items()}
