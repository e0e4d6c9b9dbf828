"""A Term as text for a terminal, as LaTeX and as MathML: one walk over the tree, three ways to write it."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from html import escape
from typing import ClassVar

from lattend.counts.terms.term import Term

# How tightly a written part holds together; SERIES is a Σ with its body
CONDITION, SUM, SERIES, PRODUCT, POWER, ATOM = range(6)
_SUPER = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOWER = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_GREEK = {"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "Δ": "Delta", "σ": "sigma", "π": "pi"}
_TILDE = "\u0303"
_LETTER = re.compile(r"[^\W\d_]\u0303?'*(_\d+)?")


class TermNotation(ABC):
    """How parts are written; `write` walks the tree and puts brackets where they are needed."""

    SIGNS: ClassVar[dict[str, str]]
    FORMATS: ClassVar[dict[str, str]]  # of what is written around its parts
    FRACTION: ClassVar[int] = POWER  # how tightly a fraction holds together

    def write(self, term: Term, least: int = CONDITION) -> str:
        """The term, in brackets where it holds together less than `least`."""
        text, level = self._written(term)
        return text if level >= least else self.fenced(text)

    def _written(self, term: Term) -> tuple[str, int]:
        args = term.args
        match term.op:
            case "number":
                return self.put("number", term.text), ATOM
            case "name":
                return self.name(*_name_parts(term.text)), ATOM
            case "+" | "-":
                left, right = self.write(args[0], SUM), self.write(args[1], SERIES)
                return self.row([left, self.sign(term.op), right]), SUM
            case "=" | "!=":
                sides = [self.write(side, SUM) for side in args]
                return self.row([sides[0], self.sign(term.op), sides[1]]), CONDITION
            case "neg":
                return self.put("neg", self.write(args[0], SERIES)), SUM
            case "*":
                return self._product(_factors(term)), PRODUCT
            case "/":
                loose = self.FRACTION > PRODUCT
                above = self.write(args[0], CONDITION if loose else PRODUCT)
                below = self.write(args[1], CONDITION if loose else POWER)
                return self.put("/", above, below), self.FRACTION
            case "//":
                return self.put("//", self.write(args[0], PRODUCT), self.write(args[1], POWER)), ATOM
            case "%":
                left, right = self.write(args[0], PRODUCT), self.write(args[1], POWER)
                return self.row([left, self.word("mod"), right]), SERIES
            case "^":
                return self.raised(self.write(args[0], ATOM), self.write(args[1])), POWER
            case "transposed":
                return self.raised(self.write(args[0], ATOM), self.sign("T")), ATOM
            case "index":
                inside = self.listed([self.write(one) for one in args[1:]], tight=True)
                return self.lowered(self.write(args[0], ATOM), inside), ATOM
            case "head":
                return self.raised(self.write(args[0], ATOM), self.fenced(self.write(args[1]))), ATOM
            case "vector" if all(row.op == "vector" for row in args):
                return self.matrix([[self.write(cell) for cell in row.args] for row in args]), ATOM
            case "vector":
                return self.fenced(self.listed([self.write(one) for one in args])), ATOM
            case "indicator":
                return self.fenced(self.write(args[0]), "[]"), ATOM
            case "chance":
                letters = [self.write(letter) for letter in args]
                inside = self.row([letters[0], self.sign("|"), letters[1]]) if "|" in term.text else None
                inside = inside or self.listed(letters)
                return self.row([self.name(term.text[0]), self.fenced(inside)], tight=True), ATOM
            case "call":
                return self._call(term)
            case "concat":
                inside = self.fenced(self.write(args[0]))
                return self.row([self.under("concat", args[1:]), inside], tight=True), ATOM
            case "matrix":
                return self.lowered(self.fenced(self.write(args[0])), self.write(args[1])), ATOM
            case _:
                return self.row([self.under("sum", args[1:]), self.write(args[0], SERIES)]), SERIES

    def _call(self, term: Term) -> tuple[str, int]:
        inner = term.args[0]
        match term.text:
            case "exp":
                return self.raised(self.name("e"), self.write(inner)), POWER
            case "norm":
                return self.fenced(self.write(inner), "‖‖"), ATOM
            case "sqrt":
                return self.root(self.write(inner)), ATOM
            case "log":
                return self.row([self.word("log"), self.write(inner, POWER)]), PRODUCT
            case _:
                inside = self.fenced(self.listed([self.write(one) for one in term.args]))
                return self.row([self.word(term.text), inside], tight=True), ATOM

    def _product(self, factors: Sequence[Term]) -> str:
        """Factors beside each other; what has no end of its own, a Σ or a logarithm, only as the last."""
        last = len(factors) - 1
        parts = [
            self.write(one, SERIES if index == last and _open(one) else POWER)
            for index, one in enumerate(factors)
        ]
        product = parts[0]
        for before, one, part in zip(factors, factors[1:], parts[1:], strict=False):
            product = self.times(product, part, before, one)
        return product

    def under(self, name: str, index: tuple[Term, ...]) -> str:
        """`Σ` or `concat` with the index below it, and limits where there are any."""
        if len(index) == 1:
            return self.big(name, self.write(index[0]), None)
        low = self.row([self.write(index[0]), self.sign("="), self.write(index[1])])
        return self.big(name, low, self.write(index[2]))

    def sign(self, sign: str) -> str:
        return self.SIGNS.get(sign, sign)

    def put(self, kind: str, *parts: str) -> str:
        return self.FORMATS[kind].format(*parts)

    @abstractmethod
    def name(self, letter: str, lower: str = "") -> str: ...
    @abstractmethod
    def word(self, word: str) -> str: ...
    @abstractmethod
    def row(self, parts: Sequence[str], tight: bool = False) -> str: ...
    @abstractmethod
    def listed(self, parts: Sequence[str], tight: bool = False) -> str: ...
    @abstractmethod
    def fenced(self, part: str, fence: str = "()") -> str: ...
    @abstractmethod
    def times(self, left: str, right: str, before: Term, after: Term) -> str: ...
    @abstractmethod
    def raised(self, base: str, power: str) -> str: ...
    @abstractmethod
    def lowered(self, base: str, index: str) -> str: ...
    @abstractmethod
    def root(self, part: str) -> str: ...
    @abstractmethod
    def matrix(self, rows: Sequence[Sequence[str]]) -> str: ...
    @abstractmethod
    def big(self, name: str, low: str, high: str | None) -> str: ...


class Plain(TermNotation):
    """For a terminal.

    >>> from lattend.counts.terms.term import read_term
    >>> Plain().write(read_term("sum(i^2, i, 1, n + 1)"))
    'Σ_{i=1}^{n+1} i²'
    """

    SIGNS: ClassVar = {"-": "−", "!=": "≠", "T": "ᵀ"}
    FORMATS: ClassVar = {"number": "{}", "neg": "−{}", "/": "{}/{}", "//": "⌊{}/{}⌋"}
    FRACTION: ClassVar = PRODUCT

    def name(self, letter: str, lower: str = "") -> str:
        return f"{letter}{lower.translate(_LOWER) if lower.isdigit() else lower and f'_{lower}'}"

    def word(self, word: str) -> str:
        return word

    def row(self, parts: Sequence[str], tight: bool = False) -> str:
        if len(parts) == 2 and parts[0] == "log" and parts[1].startswith("("):
            tight = True
        return ("" if tight else " ").join(parts)

    def listed(self, parts: Sequence[str], tight: bool = False) -> str:
        return ("," if tight else ", ").join(parts)

    def fenced(self, part: str, fence: str = "()") -> str:
        return f"{fence[0]}{part}{fence[1]}"

    def times(self, left: str, right: str, before: Term, after: Term) -> str:
        if right[0].isdigit():
            return f"{left}·{right}"
        beside = right[0] == "(" or (_short(before) and right[0] in "‖[")
        letters = (_short(before) or before.op in ("+", "-")) and _short(after)
        return f"{left}{right}" if beside or letters else f"{left} {right}"

    def raised(self, base: str, power: str) -> str:
        if power.isdigit():
            return f"{base}{power.translate(_SUPER)}"
        if power == "ᵀ":
            return f"{base}ᵀ"
        return f"{base}^{power}" if power[0] == "(" and power[-1] == ")" else f"{base}^{_braced(power)}"

    def lowered(self, base: str, index: str) -> str:
        return f"{base}_{_braced(index)}"

    def root(self, part: str) -> str:
        return f"√({part})" if len(part) > 1 else f"√{part}"

    def matrix(self, rows: Sequence[Sequence[str]]) -> str:
        return f"[{'; '.join(' '.join(row) for row in rows)}]"

    def big(self, name: str, low: str, high: str | None) -> str:
        upper = "" if high is None else f"^{_braced(high)}"
        return f"{'Σ' if name == 'sum' else name}_{_braced(low)}{upper}"


class Latex(TermNotation):
    r"""For a document that uses amsmath.

    >>> from lattend.counts.terms.term import read_term
    >>> Latex().write(read_term("n (n + 1)/2"))
    '\\frac{n (n + 1)}{2}'
    """

    SIGNS: ClassVar = {
        "!=": r"\ne",
        "|": r"\mid",
        "T": r"\top",
        "≥": r"\ge",
        "≤": r"\le",
        "→": r"\to",
        "≠": r"\ne",
    }
    FORMATS: ClassVar = {
        **{"number": "{}", "neg": "-{}", "/": r"\frac{{{}}}{{{}}}"},
        "//": r"\left\lfloor \frac{{{}}}{{{}}} \right\rfloor",
    }

    def name(self, letter: str, lower: str = "") -> str:
        primes = letter.count("'") * "'"
        letter = letter.rstrip("'")
        if letter.endswith(_TILDE):
            base = rf"\tilde{{{letter[:-1]}}}"
        elif letter in _GREEK:
            base = f"\\{_GREEK[letter]}"
        else:
            base = letter if len(letter) == 1 else self.word(letter)
        return base + primes + (f"_{{{self._lower(lower)}}}" if lower else "")

    def _lower(self, lower: str) -> str:
        return self.name(lower) if len(lower) == 1 or lower.isdigit() else rf"\mathrm{{{lower}}}"

    def word(self, word: str) -> str:
        known = word in ("log", "min", "max", "sin", "cos", "tan", "tanh")
        if word == "mod":
            return r"\bmod"
        return f"\\{word}" if known else rf"\operatorname{{{word}}}"

    def row(self, parts: Sequence[str], tight: bool = False) -> str:
        return " ".join(parts)

    def listed(self, parts: Sequence[str], tight: bool = False) -> str:
        return ", ".join(parts)

    def fenced(self, part: str, fence: str = "()") -> str:
        left, right = (r"\|", r"\|") if fence == "‖‖" else fence
        tall = r"\frac" in part or r"\sum" in part
        return f"\\left{left}{part}\\right{right}" if tall else f"{left}{part}{right}"

    def times(self, left: str, right: str, before: Term, after: Term) -> str:
        return rf"{left} \cdot {right}" if right[0].isdigit() else f"{left} {right}"

    def raised(self, base: str, power: str) -> str:
        return f"{{{base}}}^{{{power}}}" if "^" in base else f"{base}^{{{power}}}"

    def lowered(self, base: str, index: str) -> str:
        return f"{{{base}}}_{{{index}}}" if "_" in base else f"{base}_{{{index}}}"

    def root(self, part: str) -> str:
        return rf"\sqrt{{{part}}}"

    def matrix(self, rows: Sequence[Sequence[str]]) -> str:
        inside = r" \\ ".join(" & ".join(row) for row in rows)
        return rf"\begin{{pmatrix}} {inside} \end{{pmatrix}}"

    def big(self, name: str, low: str, high: str | None) -> str:
        sign = r"\sum" if name == "sum" else rf"\operatorname*{{{name}}}"
        return f"{sign}_{{{low}}}" + ("" if high is None else f"^{{{high}}}")


class MathML(TermNotation):
    """For a page.

    >>> from lattend.counts.terms.term import read_term
    >>> MathML().write(read_term("n/2"))
    '<mfrac><mi>n</mi><mn>2</mn></mfrac>'
    """

    SIGNS: ClassVar = {"-": "−", "!=": "≠", "T": "⊤"}
    FORMATS: ClassVar = {
        **{"number": "<mn>{}</mn>", "neg": "<mrow><mo>−</mo>{}</mrow>", "/": "<mfrac>{}{}</mfrac>"},
        "//": "<mrow><mo>⌊</mo><mfrac>{}{}</mfrac><mo>⌋</mo></mrow>",
    }

    def sign(self, sign: str) -> str:
        return f"<mo>{escape(super().sign(sign))}</mo>"

    def name(self, letter: str, lower: str = "") -> str:
        primes = len(letter) - len(letter.rstrip("'"))
        base = f"<mi>{letter.rstrip(chr(39))}</mi>"
        base = f"<msup>{base}<mo>{'′' * primes}</mo></msup>" if primes else base
        return f"<msub>{base}<mi>{lower}</mi></msub>" if lower else base

    def word(self, word: str) -> str:
        return "<mo lspace='0.3em' rspace='0.3em'>mod</mo>" if word == "mod" else f"<mi>{word}</mi>"

    def row(self, parts: Sequence[str], tight: bool = False) -> str:
        between = "<mspace width='0.17em'/>" if parts[0] == "<mi>log</mi>" else ""
        return f"<mrow>{between.join(parts)}</mrow>"

    def listed(self, parts: Sequence[str], tight: bool = False) -> str:
        return parts[0] if len(parts) == 1 else f"<mrow>{'<mo>,</mo>'.join(parts)}</mrow>"

    def fenced(self, part: str, fence: str = "()") -> str:
        tall = "true" if "<mfrac>" in part or "<munder" in part else "false"
        left, right = (f"<mo stretchy='{tall}'>{sign}</mo>" for sign in fence)
        return f"<mrow>{left}{part}{right}</mrow>"

    def times(self, left: str, right: str, before: Term, after: Term) -> str:
        dot = right.startswith("<mn>") or _is_word(before) or _is_word(after)
        return f"<mrow>{left}<mo>{'·' if dot else '&#x2062;'}</mo>{right}</mrow>"

    def raised(self, base: str, power: str) -> str:
        return f"<msup>{base}{power}</msup>"

    def lowered(self, base: str, index: str) -> str:
        return f"<msub>{base}{index}</msub>"

    def root(self, part: str) -> str:
        return f"<msqrt>{part}</msqrt>"

    def matrix(self, rows: Sequence[Sequence[str]]) -> str:
        cells = "".join(f"<mtr>{''.join(f'<mtd>{cell}</mtd>' for cell in row)}</mtr>" for row in rows)
        return f"<mrow><mo>(</mo><mtable>{cells}</mtable><mo>)</mo></mrow>"

    def big(self, name: str, low: str, high: str | None) -> str:
        sign = "<mo>∑</mo>" if name == "sum" else f"<mi>{name}</mi>"
        if high is None:
            return f"<munder>{sign}{low}</munder>"
        return f"<munderover>{sign}{low}{high}</munderover>"


PLAIN, LATEX, MATHML = Plain(), Latex(), MathML()


def _name_parts(name: str) -> tuple[str, str]:
    """`W_out` as its letter and what stands below it."""
    letter, _, lower = name.partition("_")
    primes = name[len(name.rstrip("'")) :] if lower else ""  # g_p' is g' of p
    return letter + primes, lower.rstrip("'")


def _is_word(term: Term) -> bool:
    """Whether this is a name of several letters, as heads: beside another one they would run together."""
    return term.op == "name" and len(_name_parts(term.text)[0].rstrip(f"'{_TILDE}")) > 1


def _factors(term: Term) -> list[Term]:
    return [*_factors(term.args[0]), term.args[1]] if term.op == "*" else [term]


def _open(term: Term) -> bool:
    """Whether this goes on to the right as far as it can: a Σ, a logarithm."""
    return term.op == "sum" or (term.op == "call" and term.text == "log")


def _short(term: Term) -> bool:
    """A number or a single letter, which needs no space around it; a power of one."""
    if term.op == "^":
        return _short(term.args[0]) and term.args[1].op == "number"
    return term.op == "number" or (term.op == "name" and _LETTER.fullmatch(term.text) is not None)


def _braced(text: str) -> str:
    """What stands below or above: signs without spaces, in braces where it is more than a letter."""
    text = re.sub(r" ([−+=≠]) ", r"\1", text)
    return text if len(text) == 1 else f"{{{text}}}"
