"""Rules from the source of a Python function: the text is parsed and never run.

    read_python("lambda q, k: k <= q").condition == parse("k <= q")

What people paste is a FlexAttention mask_mod, with the function around it that gives it its numbers:

    def sliding(window):
        def mask_mod(b, h, q_idx, kv_idx):
            return (q_idx >= kv_idx) & (q_idx - kv_idx <= window)
        return mask_mod
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from lattend.rules.axes import RESERVED
from lattend.rules.language import expr
from lattend.rules.language.grammar import MAX_INTEGER, Source, is_name
from lattend.rules.language.scan import WORDS, argument_count, not_a_condition, not_a_number
from lattend.rules.language.tracing import BATCH, SCORE_MOD, is_score_mod, names_of_positions

_PYTHON = re.compile(r"(?:^|[=\n])\s*(?:lambda\b|def\s+\w+\s*\()")
_ARITHMETIC: dict[type[ast.operator], expr.ArithOp] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}
}
_COMPARISONS: dict[type[ast.cmpop], expr.CompareOp] = {
    **{ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.GtE: ">=", ast.Gt: ">"}
}
_FUNCTIONS: dict[str, expr.ArithOp] = {
    **{"abs": "abs", "min": "min", "max": "max", "minimum": "min", "maximum": "max"}
}
_JUNCTIONS: dict[str, type[expr.And] | type[expr.Or]] = {"logical_and": expr.And, "logical_or": expr.Or}
_MODULES = ("torch", "np", "numpy", "jnp", "lt", "rules", "math")
_Function = ast.FunctionDef | ast.Lambda


def is_python(text: str) -> bool:
    """Whether a text is a Python function rather than a condition.

    >>> is_python("lambda q, k: k <= q"), is_python("k <= q")
    (True, False)
    """
    return _PYTHON.search(text) is not None


@dataclass
class PythonRule:
    """The condition of a function's source, and the names of the arrays it looks up."""

    condition: expr.Condition
    arrays: list[str]


def read_python(text: str) -> PythonRule:
    """The rule that the source of a function says.

    >>> read_python("def causal(b, h, q_idx, kv_idx): return q_idx >= kv_idx").condition
    Compare(op='>=', left=Name(name='q'), right=Name(name='k'))
    """
    source = Source("function", text)
    source.check_length()
    places = _Places(text)
    try:
        body = ast.parse(places.whole).body
    except SyntaxError as problem:
        start = places.of(problem.lineno or 1, (problem.offset or 1) - 1)
        raise source.error(f"Python cannot read this: {problem.msg}", start, start + 1) from None
    except (ValueError, RecursionError, MemoryError):
        raise source.error("it is nested too deeply, or not a text", 0, len(text)) from None
    reader = _Reader(source, places)
    block = body[0]
    condition = reader.condition(*_only_function(reader, block.body if isinstance(block, ast.If) else body))
    expr.check_size(condition)
    return PythonRule(condition, reader.arrays)


class _Places:
    """Where Python's lines and columns are in the text; one that is indented is read as a block."""

    def __init__(self, text: str) -> None:
        first = next((line for line in text.split("\n") if line.strip()), "")
        indented = first[:1] in (" ", "\t")
        self.whole, self.before = (f"if 1:\n{text}", 1) if indented else (text, 0)
        self.text, self.lines = text, text.split("\n")

    def of(self, line: int, column: int) -> int:
        """The character; Python counts lines from 1 and columns in bytes."""
        row = max(0, min(line - 1 - self.before, len(self.lines) - 1))
        inside = len(self.lines[row].encode()[: max(0, column)].decode(errors="ignore"))
        return min(sum(len(earlier) + 1 for earlier in self.lines[:row]) + inside, max(0, len(self.text) - 1))


Scope = dict[str, expr.Node]


def _only_function(reader: _Reader, body: list[ast.stmt]) -> tuple[_Function, Scope]:
    """Returns the function that decides who attends to whom, and the names defined before it."""
    scope: Scope = {}
    for line in body:
        match line:
            case ast.FunctionDef():
                inner = [part for part in line.body if isinstance(part, ast.FunctionDef)]
                if inner or _returned_lambda(line) is not None:
                    return _inside(reader, line, scope)
                return line, scope
            case ast.Expr(value=ast.Lambda() as function) | ast.Assign(value=ast.Lambda() as function):
                return function, scope
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                scope[name] = reader.node(value, scope)
            case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                continue
            case _:
                reader.refuse(line, "write a function of a query and a key, and nothing beside it")
    return reader.refuse_all("there is no function in it; write one, as in lambda q, k: k <= q")


def _returned_lambda(function: ast.FunctionDef) -> ast.Lambda | None:
    last = function.body[-1]
    return last.value if isinstance(last, ast.Return) and isinstance(last.value, ast.Lambda) else None


def _inside(reader: _Reader, outer: ast.FunctionDef, scope: Scope) -> tuple[_Function, Scope]:
    """Returns the function that a function returns; the outer arguments become parameters of the rule."""
    returned = _returned_lambda(outer)
    last = outer.body[-1]
    body = outer.body if returned is None else [*outer.body[:-1], ast.Expr(returned)]
    if returned is None and isinstance(last, ast.Return):
        body = outer.body[:-1]
    defaults = dict(zip([a.arg for a in outer.args.args][::-1], outer.args.defaults[::-1], strict=False))
    default_nodes = {name: reader.node(value, scope) for name, value in defaults.items()}
    inner, names = _only_function(reader, body)
    return inner, {**scope, **default_nodes, **names}


@dataclass
class _Reader:
    """Turns Python's nodes into ours, each with the characters it was read from."""

    source: Source
    places: _Places
    arrays: list[str] = field(default_factory=list[str])

    def condition(self, function: _Function, scope: Scope) -> expr.Condition:
        """Returns the condition that a function returns, in the rule's names."""
        arguments = function.args
        if arguments.vararg or arguments.kwarg:
            self.refuse_all("name each position and parameter, as in (q, k, t)")
        names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
        if is_score_mod(names):
            self.refuse_all(f"it {SCORE_MOD}")
        ours = names_of_positions(names, plain=not (arguments.defaults or arguments.kwonlyargs))
        inside: Scope = {**scope, **{name: expr.Name(our) for name, our in zip(names, ours, strict=True)}}
        inside |= {argument.arg: expr.Name(argument.arg) for argument in arguments.kwonlyargs}
        if isinstance(function, ast.Lambda):
            return self.truth(self.node(function.body, inside), function.body)
        for line in function.body:
            match line:
                case ast.Return(value=ast.expr() as value):
                    return self.truth(self.node(value, inside), value)
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    inside[name] = self.node(value, inside)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    inside[name] = self.node(value, inside)
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    continue
                case _:
                    self.refuse(line, "write assignments and one return: a rule has no if, for or while")
        return self.refuse_all("it returns nothing; end it with return and a condition, as in return k <= q")

    def node(self, part: ast.expr, scope: Scope) -> expr.Node:
        """A term or a condition."""
        span = self.span(part)
        match part:
            case ast.Constant(value=bool() as value):
                return expr.Truth(value, span)
            case ast.Constant(value=int() as value) if abs(value) <= MAX_INTEGER:
                return expr.Num(value, span)
            case ast.Name(id=name):
                return self.name(part, scope, name)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
                return expr.Num(-value, span)
            case ast.UnaryOp(op=ast.USub()):
                return expr.Arith("neg", (self.term(part.operand, scope),), span)
            case ast.UnaryOp(op=ast.Not() | ast.Invert()):
                return expr.Not(self.truth(self.node(part.operand, scope), part.operand), span)
            case ast.BinOp(op=ast.BitAnd() | ast.BitOr()):
                kind = expr.And if isinstance(part.op, ast.BitAnd) else expr.Or
                return self.junction(kind, (part.left, part.right), scope, span)
            case ast.BoolOp():
                kind = expr.And if isinstance(part.op, ast.And) else expr.Or
                return self.junction(kind, part.values, scope, span)
            case ast.BinOp() if type(part.op) in _ARITHMETIC:
                sides = self.term(part.left, scope), self.term(part.right, scope)
                divides = isinstance(part.op, (ast.FloorDiv, ast.Mod))
                if divides and isinstance(sides[1], expr.Num) and sides[1].value < 1:
                    self.refuse(part.right, f"the divisor is {sides[1].value}; it must be at least 1")
                return expr.Arith(_ARITHMETIC[type(part.op)], sides, span)
            case ast.Compare():
                return self.comparison(part, scope)
            case ast.IfExp():
                return self.choice(part.test, part.body, part.orelse, scope, span)
            case ast.Subscript():
                return self.lookup(part, scope)
            case ast.Call():
                return self.call(part, scope)
            case _:
                return self.refuse(part, "a rule has comparisons, and, or, not, + - * // %, abs, min and max")

    def name(self, part: ast.expr, scope: Scope, name: str) -> expr.Node:
        known = scope.get(name)
        if isinstance(known, expr.Name):
            return expr.Name(known.name, self.span(part))
        if known is not None:
            return known
        if not is_name(name, WORDS):
            self.refuse(part, f"{name} cannot be a name in a rule; use letters a to z, digits and _")
        return expr.Name(name, self.span(part))

    def junction(self, kind: Any, parts: Any, scope: Scope, span: tuple[int, int]) -> expr.Condition:
        return expr.flattened(kind, [self.truth(self.node(part, scope), part) for part in parts], span)

    def comparison(self, part: ast.Compare, scope: Scope) -> expr.Condition:
        links: list[expr.Condition] = []
        left = part.left
        for sign, right in zip(part.ops, part.comparators, strict=True):
            if type(sign) not in _COMPARISONS:
                self.refuse(part, "compare with < <= == != >= >")
            span = (self.span(left)[0], self.span(right)[1])
            sides = self.term(left, scope), self.term(right, scope)
            links.append(expr.Compare(_COMPARISONS[type(sign)], *sides, span))
            left = right
        return links[0] if len(links) == 1 else expr.flattened(expr.And, links, self.span(part))

    def choice(self, test: ast.expr, yes: ast.expr, no: ast.expr, scope: Scope, span: Any) -> expr.Condition:
        """`a if c else b`, of conditions: c and a, or not c and b."""
        asked, first, second = (self.truth(self.node(one, scope), one) for one in (test, yes, no))
        either = expr.And((asked, first), span), expr.And((expr.Not(asked), second), span)
        return expr.flattened(expr.Or, either, span)

    def lookup(self, part: ast.Subscript, scope: Scope) -> expr.Lookup:
        if not isinstance(part.value, ast.Name):
            self.refuse(part, "look up a named array, as in document_id[q_idx]")
        name = part.value.id
        elements = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
        indices = [self.term(element, scope) for element in elements if not self.is_batch(element, scope)]
        if not indices or not is_name(name, WORDS | RESERVED):
            self.refuse(part, "look up one entry for each position, as in document_id[q_idx]")
        if name not in self.arrays:
            self.arrays.append(name)
        return expr.Lookup(name, tuple(indices), self.span(part))

    def is_batch(self, part: ast.expr, scope: Scope) -> bool:
        return isinstance(part, ast.Name) and scope.get(part.id) == expr.Name(BATCH)

    def call(self, part: ast.Call, scope: Scope) -> expr.Node:
        """Reads a call of abs, min or max, or of the torch functions for them."""
        arguments, span = list(part.args), self.span(part)
        match part.func:
            case ast.Name(id=name):
                pass
            case ast.Attribute(value=ast.Name(id=module), attr=name) if module in _MODULES:
                pass
            case ast.Attribute(value=value, attr=name):  # (q - k).abs()
                arguments = [value, *arguments]
            case _:
                self.refuse(part, "a rule calls abs, min and max only")
        if part.keywords:
            self.refuse(part, "write arguments without names")
        if name in _JUNCTIONS:
            return self.junction(_JUNCTIONS[name], arguments, scope, span)
        if name == "logical_not" and len(arguments) == 1:
            return expr.Not(self.truth(self.node(arguments[0], scope), arguments[0]), span)
        if name == "where" and len(arguments) == 3:
            return self.choice(arguments[0], arguments[1], arguments[2], scope, span)
        if name not in _FUNCTIONS:
            self.refuse(part, f"there is no function {name}; there are abs, min and max")
        if (len(arguments) != 1) if name == "abs" else (len(arguments) < 2):
            self.refuse(part, argument_count(_FUNCTIONS[name], len(arguments)))
        return expr.Arith(_FUNCTIONS[name], tuple(self.term(one, scope) for one in arguments), span)

    # What was found, and whether it fits

    def term(self, part: ast.expr, scope: Scope) -> expr.Term:
        node = self.node(part, scope)
        if node == expr.Name(BATCH):
            self.refuse(part, "a rule is the same for every element of the batch; only an array may differ")
        if isinstance(node, (expr.Num, expr.Name, expr.Arith, expr.Lookup)):
            return node
        return self.refuse(part, not_a_number(self.source.part(*self.span(part)), "a number stands here"))

    def truth(self, node: expr.Node, part: ast.expr) -> expr.Condition:
        if isinstance(node, expr.Lookup):
            return expr.Compare("!=", node, expr.Num(0), self.span(part))
        if isinstance(node, (expr.Num, expr.Name, expr.Arith)):
            self.refuse(part, not_a_condition(self.source.part(*self.span(part))))
        return node

    def span(self, part: ast.AST) -> tuple[int, int]:
        node = cast(Any, part)
        last = self.places.of(node.end_lineno, node.end_col_offset - 1)
        return self.places.of(node.lineno, node.col_offset), last + 1

    def refuse(self, part: ast.AST, message: str) -> NoReturn:
        raise self.source.error(message, *self.span(part))

    def refuse_all(self, message: str) -> NoReturn:
        raise self.source.error(message, 0, len(self.source.text))
