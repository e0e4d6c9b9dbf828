"""The same rule elsewhere: as a FlexAttention mask_mod, as a NumPy mask, for PyTorch's own attention."""

from __future__ import annotations

from collections.abc import Mapping

from lattend.rules.axes import HEAD
from lattend.rules.language import expr
from lattend.rules.language.python_code import python_code
from lattend.rules.rule import Rule


def numpy_mask(rule: Rule, /, **values: int) -> str:
    """Lines of Python that make the mask of a rule with NumPy alone; arrays are given by their names.

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
    places = f"{', '.join(rule.positions)} = np.indices(({sizes}))"
    return "\n".join(("import numpy as np", "", *_numbers(rule, values), places, f"mask = {code}"))


def mask_mod(rule: Rule, /, **values: int) -> str:
    """Lines of Python with a FlexAttention mask_mod of the rule, images read row by row.

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
    """The positions along each axis, from places row by row."""
    if len(queries) == 1:
        return [f"    {queries[0][0]}, {keys[0][0]} = {query}, {key}"]
    lines: list[str] = []
    for axes, flat in ((queries, query), (keys, key)):
        names = ", ".join(name for name, _ in axes)
        inner = [size for _, size in axes[1:]]
        terms = [f"{flat} // {_product(inner)}"]
        for at in range(1, len(axes)):
            below = inner[at:]
            whole = f"{flat} // {_product(below)}" if below else flat
            terms.append(f"{whole} % {axes[at][1]}")
        lines.append(f"    {names} = {', '.join(terms)}")
    return lines


def _product(sizes: list[str]) -> str:
    return sizes[0] if len(sizes) == 1 else f"({'*'.join(sizes)})"


def _numbers(rule: Rule, values: Mapping[str, int]) -> list[str]:
    """One line that gives the letters their numbers."""
    known = {**rule.values, **values}
    used = {*rule.sizes, *expr.names(rule.condition)}
    names = [name for name in (*rule.sizes, *rule.parameters) if name in known and name in used]
    return [f"{', '.join(names)} = {', '.join(str(known[name]) for name in names)}"] if names else []
