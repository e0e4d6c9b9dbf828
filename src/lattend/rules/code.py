"""A rule as Python code: a FlexAttention mask_mod, a NumPy mask, a condition on arrays."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from lattend.rules.axes import HEAD
from lattend.rules.language import expr
from lattend.rules.language.expr import And, Arith, Compare, Condition, Lookup, Name, Node, Not, Or, Truth
from lattend.rules.rule import Rule


def numpy_mask(rule: Rule, /, **values: int) -> str:
    """Returns lines of Python that compute the mask of a rule with NumPy; arrays appear under their names.

    >>> from lattend.rules.reader import rule
    >>> print(numpy_mask(rule("k <= q and q - k <= t"), n=8, t=2))
    import numpy as np
    <BLANKLINE>
    n, t = 8, 2
    q, k = np.indices((n, n))
    mask = (k <= q) & (q - k <= t)
    """
    sizes = ", ".join(rule.limits.values())
    code = python_code(rule.condition, rule.positions, "np")
    positions = f"{', '.join(rule.positions)} = np.indices(({sizes}))"
    return "\n".join(("import numpy as np", "", *_numbers(rule, values), positions, f"mask = {code}"))


def mask_mod(rule: Rule, /, **values: int) -> str:
    """Returns lines of Python with a FlexAttention mask_mod of the rule; images are flattened row by row.

    >>> from lattend.rules.reader import rule
    >>> print(mask_mod(rule("k <= q and q - k <= t"), n=8, t=2))
    import torch
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    <BLANKLINE>
    n, t = 8, 2
    <BLANKLINE>
    def mask_mod(b, h, q_idx, kv_idx):
        q, k = q_idx, kv_idx
        return (k <= q) & (q - k <= t)
    <BLANKLINE>
    block_mask = create_block_mask(mask_mod, None, None, n, n, device="cpu")
    out = flex_attention(query, key, value, block_mask=block_mask)
    """
    queries = [(axis.query, axis.queries) for axis in rule.axes]
    keys = [(axis.key, axis.keys) for axis in rule.axes]
    head = [f"    {HEAD} = h"] if rule.has_heads else []
    lengths = ("*".join(size for _, size in axes) for axes in (queries, keys))
    heads = "heads" if rule.has_heads else "None"
    code = python_code(rule.condition, rule.positions, "torch")
    return "\n".join(
        (
            "import torch",
            "from torch.nn.attention.flex_attention import create_block_mask, flex_attention",
            *("", *_numbers(rule, values), ""),
            "def mask_mod(b, h, q_idx, kv_idx):",
            *head,
            *_unflattened(queries, "q_idx", keys, "kv_idx"),
            f"    return {code}",
            "",
            f'block_mask = create_block_mask(mask_mod, None, {heads}, {", ".join(lengths)}, device="cpu")',
            "out = flex_attention(query, key, value, block_mask=block_mask)",
        )
    )


Axes = list[tuple[str, str]]


def _unflattened(queries: Axes, query: str, keys: Axes, key: str) -> list[str]:
    """Returns lines that compute the positions along each axis from flat positions."""
    if len(queries) == 1:
        return [f"    {queries[0][0]}, {keys[0][0]} = {query}, {key}"]
    lines: list[str] = []
    for axes, flat in ((queries, query), (keys, key)):
        names = ", ".join(name for name, _ in axes)
        inner = [size for _, size in axes[1:]]
        terms = [f"{flat} // {_product(inner)}"]
        for at in range(1, len(axes)):
            below = inner[at:]
            above = f"{flat} // {_product(below)}" if below else flat
            terms.append(f"{above} % {axes[at][1]}")
        lines.append(f"    {names} = {', '.join(terms)}")
    return lines


def _product(sizes: list[str]) -> str:
    return sizes[0] if len(sizes) == 1 else f"({'*'.join(sizes)})"


def _numbers(rule: Rule, values: Mapping[str, int]) -> list[str]:
    """Returns a line that assigns the known numbers to their names; no line if there are none."""
    known = {**rule.values, **values}
    used = {*rule.sizes, *expr.names(rule.condition)}
    names = [name for name in (*rule.sizes, *rule.parameters) if name in known and name in used]
    return [f"{', '.join(names)} = {', '.join(str(known[name]) for name in names)}"] if names else []


def python_code(
    condition: Condition, positions: Collection[str], module: str, entry: str | None = None
) -> str:
    """Returns a condition as Python code; `positions` are arrays of `module`, all other names are numbers.

    `entry` names a function that reads an array, given by its name, at its indices, in place of brackets.

    >>> from lattend.rules.language.parser import parse
    >>> python_code(parse("k <= q and not q - k > min(q, t)"), ("q", "k"), "np")
    '(k <= q) & ~(q - k > np.where(q < t, q, t))'
    >>> python_code(parse("doc[q] == doc[k]"), ("q", "k"), "np", "entry")
    "entry('doc', q) == entry('doc', k)"
    """
    code = _code(_on_arrays(condition, positions, module, entry))
    arrays = [name for name in expr.names(condition) if name in positions]
    return code if arrays else f"({next(iter(positions))} >= 0) & ({code})"


def _on_arrays(condition: Condition, positions: Collection[str], module: str, entry: str | None) -> Condition:
    """Returns the condition with calls for min and max of arrays and for lookups."""

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
