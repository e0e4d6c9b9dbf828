"""What a LaTeX text must be, as far as that is seen without LaTeX: ASCII, all that is opened closed."""

from __future__ import annotations

import re

ENVIRONMENT = re.compile(r"\\(begin|end)\{(\w+\*?)\}")
ALIGNING = ("aligned", "cases", "tabular", "array", "align*", "gather*", "pmatrix", "bmatrix")
PAIRS = {"left": "right", "lfloor": "rfloor", "lceil": "rceil"}


def faults(text: str) -> list[str]:
    """What is wrong with a LaTeX text; a formula stands without dollar signs, as in an equation."""
    plain = re.sub(r"(?<!\\)%.*", "", text)
    found = [f"not ASCII: {sign!r}" for sign in sorted({sign for sign in text if not sign.isascii()})]
    found += _braces(plain) + _environments(plain)
    for opening, closing in PAIRS.items():
        if len(re.findall(rf"\\{opening}(?![a-zA-Z])", plain)) != len(
            re.findall(rf"\\{closing}(?![a-zA-Z])", plain)
        ):
            found.append(rf"\{opening} and \{closing} do not match")
    if len(re.findall(r"(?<!\\)\$", plain)) % 2:
        found.append("a $ that is not closed")
    if re.search(r"\d[eE][-+]?\d", re.sub(r"\{HTML\}\{\w+\}", "", plain)):  # a colour is no number
        found.append("a power of ten as programs write it")
    return found


def _braces(text: str) -> list[str]:
    depth = 0
    for sign in re.findall(r"\\\\|\\[{}]|[{}]", text):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth < 0:
            return ["a } without its {"]
    return ["a { that is not closed"] if depth else []


def _environments(text: str) -> list[str]:
    """Environments that do not nest, and line ends and ampersands outside of one."""
    open_: list[str] = []
    found: list[str] = []
    for token in re.finditer(r"\\begin\{\w+\*?\}|\\end\{\w+\*?\}|\\\\|\\&|&", text):
        match = ENVIRONMENT.fullmatch(token[0])
        if match and match[1] == "begin":
            open_.append(match[2])
        elif match:
            if not open_ or open_.pop() != match[2]:
                found.append(rf"\end{{{match[2]}}} without its beginning")
        elif token[0] != r"\&" and not any(name in ALIGNING for name in open_):
            found.append(f"{token[0]} outside an environment")
    return found + [rf"\begin{{{name}}} without its end" for name in open_]
