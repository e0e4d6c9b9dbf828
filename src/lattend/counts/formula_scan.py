"""The words and signs of formulas: plain text, Unicode and LaTeX become the same tokens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection

from lattend.rules.language.grammar import Source, Token, scan, scan_number

FUNCTIONS = ("floor", "ceil", "min", "max", "abs", "sum", "binom")

_SIGN = re.compile(
    r"\*\*|//|==|!=|<=|>=|\.\.\.|does\s+not\s+divide\b|[-+*/%^()\[\]{},;=<>≤≥≠∣∤_·×⋅∗−–÷⌊⌋⌈⌉Σ∑…⋯∈]|\\[{}%]"
)
_SAME = {
    **{"**": "^", "·": "*", "×": "*", "⋅": "*", "∗": "*", "−": "-", "–": "-", "÷": "/", "∑": "Σ"},
    **{"\\{": "{", "\\}": "}", "\\%": "%", "==": "=", "...": "…", "⋯": "…", "∈": "="},
    **{"≤": "<=", "≥": ">=", "≠": "!="},
}
_WORDS = {
    **{word: word for word in ("when", "otherwise", "where", "and", "or")},
    **{"if": "when", "always": "otherwise", "divides": "∣"},
}
_POWER = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_SUBSCRIPTS = "₀₁₂₃₄₅₆₇₈₉ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ"
_SUBSCRIPT = str.maketrans(_SUBSCRIPTS, "0123456789aehijklmnoprstuvx")
_STYLES = ("mathrm", "mathit", "mathbf", "mathcal", "text", "textit", "operatorname")
# D_o, D_{out}, D_{\text{out}}, D_\text{out}, Dₒ
_STYLED_INDEX = rf"\\(?:{'|'.join(_STYLES)})\s*\{{[A-Za-z0-9]+\}}"
_INDEX = (
    rf"(?:_(?:[A-Za-z0-9]+|\{{\s*(?:[A-Za-z0-9]+|{_STYLED_INDEX})\s*\}}|{_STYLED_INDEX})|[{_SUBSCRIPTS}]+)*"
)
_INDICES = re.compile(_INDEX)
_NO_LETTER = re.compile(rf"\\(?:{'|'.join(_STYLES)})|[{{}}\s]")
_DECIMAL = re.compile(r"[0-9]+\.[0-9]+")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_NO_MEANING = r"left|right|limits|displaystyle|quad|[bB]igg?[lr]?"  # how a formula looks, not what it says
# In LaTeX ~ is a space; at the beginning, or between spaces, it says "about"
_UNSEEN = rf"(?<=\S)~|(?<=.)~(?=\S)|[$&]|\\[,;:! ()\[\]]|\\(?:{_NO_MEANING})(?![A-Za-z])"
_SPACE = re.compile(rf"(?:\s|\\\\|{_UNSEEN})+")
# A formula in rows: there the end of a line, or LaTeX's, says something
_ROWS = re.compile(r"\b(?:when|otherwise)\b")
_LEFT_OUT = re.compile(r"(?:…|\.\.\.) and [\d,]+ more pieces[^}\n]*")
_SPACE_IN_ROWS = re.compile(rf"(?:[^\S\n]|\\\\|{_UNSEEN})+")
_SPACE_IN_CASES = re.compile(rf"(?:\s|{_UNSEEN})+")
_COMMANDS = {
    **{"cdot": "*", "times": "*", "div": "/", "bmod": "%", "mod": "%", "sum": "Σ", "in": "="},
    **{"lbrace": "{", "rbrace": "}", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉"},
    **dict.fromkeys(("frac", "dfrac", "tfrac"), "frac"),
    **dict.fromkeys(("binom", "dbinom", "tbinom"), "binom"),
    **{"le": "<=", "leq": "<=", "ge": ">=", "geq": ">=", "lt": "<", "gt": ">", "ne": "!=", "neq": "!="},
    **{"mid": "∣", "nmid": "∤"},
    **dict.fromkeys(("dots", "ldots", "cdots", "dotsb", "dotsc"), "…"),
}
_STYLED = re.compile(r"\s*(?:\{\s*([A-Za-z][A-Za-z0-9]*)\s*\}|([A-Za-z]))")
_ABOUT = "a claim is exact; for how it grows write Theta(n^2)"
NO_RELATION = "a claim is an equation; for an upper bound write O(n^2), for a lower one Omega(n^2)"
_INSTEAD = {"|": "write abs(…) instead of |…|", "≈∼≃~": _ABOUT, "≪≫": NO_RELATION}
_NO_EQUATION = {
    **dict.fromkeys(("approx", "sim", "simeq"), _ABOUT),
    **dict.fromkeys(("ll", "gg"), NO_RELATION),
}
_ABSENT = frozenset({"log", "ln", "lg", "exp", "sqrt", "sin", "cos", "tan"})
# Each line is one meaning, what a letter means most often first; the count's own name is among them
_MEANINGS = tuple(
    frozenset(line.split())
    for line in (
        "n N T L S seq_len seqlen seq_length sequence_length length tokens n_tokens num_tokens T_x N_x",
        "m M S n_keys num_keys kv_len source_length T_kv N_kv",
        "n N side rows cols height width H W size image_size n_x n_y",
        "heads N_h n_h H h n_head n_heads num_heads nhead nheads N_heads N_head attention_heads",
        "D_hid D_h D_k D_q d_h d_k d_q d_head D_head head_dim d_hid d_hidden D_hidden hidden_dim d_qk",
        "D_i D_in D_x D_X D_model d_i d_in d_x d_model d D E d_embed embed_dim hidden_size n_embd",
        "D_o D_v d_o d_v d_value value_dim v_dim",
        "D_out d_out D_output d_output out_features output_dim",
        "h H hidden hidden_size n_hidden d_h D_h d_hidden d_hid units neurons d",
        "c C channels in_channels c_in C_in n_channels d_x inputs input_size",
        "c_out C_out out_channels filters n_filters",
        "t T w W window window_size sliding_window r radius left_context",
        "t T steps timesteps time n_steps seq_len length n",
        "w W window window_size block block_size chunk chunk_size b B l",
        "k K kernel kernel_size filter_size",
        "l L layers n_layers num_layers n_layer depth",
        "q i j x query position pos",
        "k j i y key",
    )
)


def _greek(letter: str) -> str:
    """The name of a Greek letter: alpha for α, Theta for Θ."""
    name = unicodedata.name(unicodedata.normalize("NFKC", letter)).rpartition(" ")[2]
    name = name.replace("LAMDA", "LAMBDA")  # as Unicode spells it
    return name.capitalize() if letter.isupper() else name.lower()


_GREEK = {letter: _greek(letter) for letter in "αβγδεζηθικλμνξοπρστυφχψωΓΔΘΛΞΠΥΦΨΩϵϑϕµ"}
_NAME = re.compile(rf"(?:[A-Za-z][A-Za-z0-9]*|[{''.join(_GREEK)}]){_INDEX}")

_NAMES = {
    **{"min": "min", "max": "max", "ell": "l", "varepsilon": "epsilon", "varphi": "phi", "vartheta": "theta"},
    **{name: name for name in (*_GREEK.values(), "Sigma")},
}


def tokens(source: Source, known: Collection[str] = ()) -> list[Token]:
    """Returns the tokens of a formula, the last of kind "end".

    A run of letters such as `nt` that is not in `known` is cut into names that are, where it can be, or that
    mean the same, as N_h means heads.
    """
    left_out = _LEFT_OUT.search(source.text)
    if left_out:
        raise source.error(
            "these pieces are left out, and without them it is not the count", *left_out.span()
        )
    in_cases = r"\begin{cases}" in source.text
    has_rows = in_cases or _ROWS.search(source.text) is not None
    space = _SPACE if not has_rows else _SPACE_IN_CASES if in_cases else _SPACE_IN_ROWS
    scanned = scan(source, lambda at: _at(source, at), space)
    scanned = [_as_word(token) if token.value not in known else token for token in scanned]
    names = {*known, *_summed(scanned), *spellings(known)}
    return [part for token in scanned for part in (_cut(token, names) if known else (token,))]


def _as_word(token: Token) -> Token:
    """Returns the sign for a word such as `when` or `divides`; other tokens stay as they are."""
    if token.kind != "name" or token.value not in _WORDS:
        return token
    return Token("sign", _WORDS[token.value], token.start, token.end)


def _at(source: Source, at: int) -> list[Token]:
    text = source.text
    sign = _SIGN.match(text, at)
    if sign:
        value = "∤" if sign[0].startswith("does") else _SAME.get(sign[0], sign[0])
        return [Token("sign", value, at, sign.end())]
    if text[at] == "\n" or text.startswith("\\\\", at):
        return [Token("sign", ";", at, at + (1 if text[at] == "\n" else 2))]
    decimal = _DECIMAL.match(text, at)
    if decimal:
        return [Token("number", decimal[0], at, decimal.end())]
    power = _POWER.match(text, at)
    if power:
        digits = power[0].translate(_DIGITS)
        return [Token("sign", "^", at, at), Token("number", digits, at, power.end())]
    if text[at] == "\\":
        return [_command(source, at)]
    name = _NAME.match(text, at)
    if name:
        return _name(source, name)
    number = scan_number(source, at)
    if number:
        return [number]
    for signs, message in _INSTEAD.items():
        if text[at] in signs:
            raise source.error(message, at, at + 1)
    shown = text[at] if text[at].isprintable() else f"U+{ord(text[at]):04X}"
    raise source.error(f"{shown} is not in the language of formulas", at, at + 1)


def _name(source: Source, name: re.Match[str]) -> list[Token]:
    start, end = name.span()
    if name[0].startswith("sum_") or (name[0] == "sum" and source.text[end : end + 1] in ("_", "^")):
        return [Token("sign", "Σ", start, start + 3)]
    return [_word(source, _spelt(name[0]), start, end)]


def _spelt(name: str) -> str:
    """Returns a name in plain text: D_out for D_{out}, alpha_1 for α₁."""
    base = _GREEK.get(name[0], name[0])
    rest = re.sub(f"[{_SUBSCRIPTS}]+", lambda subscripts: f"_{subscripts[0].translate(_SUBSCRIPT)}", name[1:])
    return base + _NO_LETTER.sub("", rest)


def _word(source: Source, word: str, start: int, end: int) -> Token:
    source.check_name(start, end)
    if word in _ABSENT:
        message = f"there is no {word} here; a formula is made of + - * / // % ^ floor ceil min max abs sum"
        raise source.error(message, start, end)
    return Token("sign", "%", start, end) if word == "mod" else Token("name", word, start, end)


def _command(source: Source, at: int) -> Token:
    command = _COMMAND.match(source.text, at)
    word = command[1] if command else ""
    end = command.end() if command else at + 1
    if word in ("begin", "end") and source.text.startswith("{cases}", end):
        return Token("sign", word, at, end + len("{cases}"))
    if word in _COMMANDS:
        return Token("sign", _COMMANDS[word], at, end)
    styled = _STYLED.match(source.text, end) if word in _STYLES else None
    name = (styled[1] or styled[2]) if styled else _NAMES.get(word, word if word in _ABSENT else "")
    if name:
        index = _INDICES.match(source.text, styled.end() if styled else end)
        assert index is not None  # it may be empty
        return _word(source, name + _spelt(f"x{index[0]}")[1:], at, index.end())
    message = _NO_EQUATION.get(
        word, f"{source.part(at, end)} is not known here; write the formula without it"
    )
    raise source.error(message, at, end)


def _summed(scanned: list[Token]) -> set[str]:
    """The variables that sums run over: they are known too. A sum that names none runs over i."""
    names: set[str] = set()
    for index, token in enumerate(scanned):
        follows = scanned[index + 1 : index + 2]
        if token.value == "_" and token.kind == "sign":
            brace, name, equals = (scanned[index:] + scanned[-1:] * 3)[1:4]
            named = brace.value == "{" and name.kind == "name" and equals.value == "="
            names.add(name.value if named else "i")
        if token.kind == "name" and token.value == "sum" and follows and follows[0].value == "(":
            names.update(_second_argument(scanned, index + 2))
    return names


def _second_argument(scanned: list[Token], start: int) -> list[str]:
    level = 0
    for at in range(start, len(scanned) - 1):
        level += (scanned[at].value in ("(", "[", "{")) - (scanned[at].value in (")", "]", "}"))
        if level < 0:
            return []
        if level == 0 and scanned[at].value == ",":
            return [scanned[at + 1].value] if scanned[at + 1].kind == "name" else []
    return []


def _cut(token: Token, names: Collection[str]) -> tuple[Token, ...]:
    word = token.value
    if token.kind != "name" or word in names or word in FUNCTIONS:
        return (token,)
    # reach[i]: the last name of a way to write word[:i] as known names, longest names first
    reach: dict[int, str] = {0: ""}
    for end in range(1, len(word) + 1):
        fits = (word[start:end] for start in range(end) if start in reach and word[start:end] in names)
        piece = next(fits, None)
        if piece is not None:
            reach[end] = piece
    if len(word) not in reach:
        return (token,)
    pieces: list[Token] = []
    end = len(word)
    while end:
        start = end - len(reach[end])
        pieces.append(Token("name", word[start:end], token.start + start, token.start + end))
        end = start
    return tuple(reversed(pieces))


def meant(name: str, known: Collection[str]) -> list[str]:
    """Returns known names of the same meaning or another spelling: N_h for heads, Dhid for D_hid.

    >>> meant("N_h", ("n", "heads", "D_i")), meant("d_in", ("n", "heads", "D_i"))
    (['heads'], ['D_i'])
    """
    alike = [other for other in known if _plain(other) == _plain(name)]
    if alike:
        return alike
    alternatives = (
        [other for other in known if other in meaning] for meaning in _MEANINGS if name in meaning
    )
    return next((names for names in alternatives if names), list[str]())


def spellings(known: Collection[str]) -> set[str]:
    """Returns the names of several letters that mean one of the known names."""
    return {name for meaning in _MEANINGS if meaning & {*known} for name in meaning if len(name) > 1}


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
