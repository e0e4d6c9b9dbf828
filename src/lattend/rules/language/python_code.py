"""A condition as Python code on arrays: & | ~ instead of and, or, not, for NumPy and FlexAttention."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lattend.rules.language import expr
from lattend.rules.language.expr import And, Arith, Compare, Condition, Lookup, Name, Node, Not, Or, Truth


def python_code(
    condition: Condition, positions: Collection[str], module: str, entry: str | None = None
) -> str:
    """The condition where `positions` are arrays of `module`, and the other names are numbers.

    `entry` names a function that reads an array, given by its name, at its indices, in place of brackets.

    >>> from lattend.rules.language.parser import parse
    >>> python_code(parse("k <= q and not q - k > min(q, t)"), ("q", "k"), "np")
    '(k <= q) & ~(q - k > np.where(q < t, q, t))'
    >>> python_code(parse("doc[q] == doc[k]"), ("q", "k"), "np", "entry")
    "entry('doc', q) == entry('doc', k)"
    """
    code = _code(_on_arrays(condition, positions, module, entry))
    here = [name for name in expr.names(condition) if name in positions]
    return code if here else f"({next(iter(positions))} >= 0) & ({code})"


def _on_arrays(condition: Condition, positions: Collection[str], module: str, entry: str | None) -> Condition:
    """The condition with min and max of arrays, and lookups by `entry`, as calls that take them."""

    def step(node: Node, parts: Sequence[Node]) -> Node:
        built = expr.rebuilt(node, parts)
        if isinstance(built, Lookup) and entry is not None:
            return Name(f"{entry}({', '.join([repr(built.array), *map(expr.term_text, built.indices)])})")
        if not isinstance(built, Arith) or built.op not in ("min", "max"):
            return built
        if not any(isinstance(part, Name) and part.name in positions for part in expr.walk(node)):
            return built
        sign = "<" if built.op == "min" else ">"
        first, *others = (expr.term_text(arg, 4) for arg in built.args)
        for other in others:
            first = f"{module}.where({first} {sign} {other}, {first}, {other})"
        return Name(first)

    return expr.fold(condition, step)  # pyright: ignore[reportReturnType]  (a condition stays one)


def _code(node: Condition, inside: bool = False) -> str:
    match node:
        case Truth():
            return str(node.value)
        case Compare():
            text = expr.text(node)
        case Not():
            return f"~{_code(node.arg, True)}"
        case And():
            text = " & ".join(_code(arg, True) for arg in node.args)
        case Or():
            text = " | ".join(_code(arg, True) for arg in node.args)
    return f"({text})" if inside else text
