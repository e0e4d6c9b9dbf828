r"""Formulas and claims as people write them: plain text, Unicode or LaTeX, read into one tree.

    parse_formula("n(n + 1)/2") == parse_formula(r"\frac{n(n+1)}{2}")

is Arith("/", (Arith("*", (n, n + 1)), 2)) either way: names side by side are a product. From loosest to
tightest: + -, * / // %, -x, ^.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import comb, factorial, prod
from typing import ClassVar, cast

from lattend.counts.formula import (
    BigO,
    ClaimSide,
    Formula,
    OrderSign,
    ParsedFormula,
    Sum,
    WrittenClaim,
    applied,
    children,
    rational,
    walk,
)
from lattend.counts.formula_scan import FUNCTIONS, NO_RELATION, tokens
from lattend.counts.piecewise_parser import Definition, end_of_head, read_rows, take_definitions
from lattend.counts.sum_parser import read_dots, read_sigma, summands
from lattend.errors import TextError
from lattend.rules.language.expr import (
    And,
    Arith,
    ArithOp,
    Compare,
    Condition,
    Name,
    Num,
    Or,
    Span,
    Term,
    Truth,
)
from lattend.rules.language.grammar import (
    ADD,
    AND,
    COMPARE,
    MULTIPLY,
    NEGATE,
    OR,
    POWER,
    ConditionParser,
    Source,
    Token,
)

MAX_SIZE = 5_000  # parts of a formula that holds definitions
MAX_TERMS = 5_000
MAX_DEGREE = 32

_RELATIONS = ("=", "!=", "<=", "<", ">=", ">", "∣", "∤")
_SIGNS = {"+": ADD, "-": ADD, "*": MULTIPLY, "/": MULTIPLY, "//": MULTIPLY, "%": MULTIPLY, "^": POWER}
_EXAMPLE = {
    **{
        "floor": "floor(n/w)",
        "ceil": "ceil(n/w)",
        "min": "min(n, t)",
        "max": "max(n, t)",
        "abs": "abs(n - t)",
    },
    **{"sum": "sum(i, i, 1, n)", "binom": "binom(n, 2)"},
}
_OPAQUE = ("/", "//", "%", "frac", "⌊", "⌈", *FUNCTIONS)
_OPERAND = "write a number, a name or a bracket"
_LEFT_OVER = {
    ",": "a comma belongs inside min(…), max(…) or sum(…)",
    "=": "write only one side of the equation, the formula",
}
_COUNT = {"floor": 1, "ceil": 1, "abs": 1, "sum": 4, "binom": 2}
ORDERS = ("O", "Theta", "Omega", "o", "omega")


def parse_formula(text: str, known: Collection[str] = ()) -> Formula | BigO:
    """Parses a formula.

    Names side by side are a product: with `known={"n", "t"}` also `nt`, which is otherwise one name.

    >>> parse_formula("2n", known={"n"})
    Arith(op='*', args=(Num(value=2), Name(name='n')))
    """
    return FormulaParser(text, known).whole()


def parse_claim(
    text: str, known: Collection[str] = (), definitions: Mapping[str, Formula] | None = None
) -> WrittenClaim:
    """Parses a claim about a count with the `known` names and already defined short names.

    >>> [side.text for side in parse_claim("N = 1 + 2 + … + n = n(n + 1)/2", {"n"}).sides]
    ['1 + 2 + … + n', 'n(n + 1)/2']
    """
    parser = FormulaParser(text, known, definitions)
    take_definitions(parser)
    name = _heading(parser)
    sides = [parser.side()]
    while parser.current.value == "=":
        parser.at += 1
        sides.append(parser.side())
        before, after = sides[-2].node, sides[-1].node
        if isinstance(before, BigO) and not isinstance(after, BigO):
            raise parser.error(
                "after an order comes another order, no formula", *(after.span or (0, len(text)))
            )
    parser.finish()
    bracketed = (f"{text[:start]}({text[start:end]}){text[end:]}" for start, end in parser.open_sums)
    return WrittenClaim(tuple(sides), name, tuple(dict.fromkeys(parser.readings)), tuple(bracketed))


def _heading(parser: FormulaParser) -> str:
    """Reads the name before the first equals sign, `N =` or `N(n, t) =`, unless it is a known name."""
    name, end = parser.current.value, end_of_head(parser.tokens, parser.at)
    head = parser.tokens[parser.at : end]
    if end is None or name in {*parser.known, *FUNCTIONS, *ORDERS}:
        return ""
    if any(token.kind != "name" and token.value not in ("(", ",", ")") for token in head):
        return ""
    parser.at = end + 1
    return name


class FormulaParser(ConditionParser[ParsedFormula]):
    """Reads one text."""

    LEVEL: ClassVar = {**_SIGNS, "or": OR, "and": AND, **dict.fromkeys(_RELATIONS, COMPARE)}
    LOOSEST: ClassVar = ADD
    CLOSING: ClassVar = {"(": ")", "[": "]", "{": "}", "⌊": "⌋", "⌈": "⌉"}

    def __init__(
        self, text: str, known: Collection[str], definitions: Mapping[str, Formula] | None = None
    ) -> None:
        source = Source("formula", text)
        source.check_length()
        super().__init__(source, tokens(source, known))
        self.known = set(known)
        parts = {name: ParsedFormula(node, 0, 0) for name, node in (definitions or {}).items()}
        self.definitions = {name: Definition(part) for name, part in parts.items()}
        self.in_condition = False
        self.readings: list[str] = []
        self.open_sums: list[tuple[int, int]] = []  # where the body of a sum may have lost its bracket
        # what a product is made of: names, and quotients and functions, which stay as they are
        opaque = sum(token.value in _OPAQUE for token in self.tokens)
        self.variables = len({token.value for token in self.tokens if token.kind == "name"}) + opaque

    def whole(self) -> Formula | BigO:
        """The formula, or the order, that the whole text is."""
        take_definitions(self)
        formula = self.side()
        self.finish()
        return formula.node

    def side(self) -> ClaimSide:
        """Reads one side of an equation: a formula or an order."""
        if len(self.tokens) == 1:
            raise self.error("it is empty; write for instance n(n + 1)/2", 0, 1)
        order = self.current if self.is_order(self.current, self.following) else None
        self.at += order is not None
        piece = self.limited(self.operand(ADD)) if order else self.formula()
        if order is None:
            return ClaimSide(piece.node, self.written(*piece.span))
        if self.current.kind != "end" and self.current.value != "=":
            raise self.alone(order)
        span = order.start, piece.end
        return ClaimSide(BigO(piece.node, cast(OrderSign, order.value), span), self.written(*span))

    def formula(self) -> ParsedFormula:
        """Reads a formula, or rows of formulas with conditions."""
        piece = self.expression(ADD)
        if self.current.value in ("when", "otherwise", ";"):
            piece = read_rows(self, piece)
        return self.limited(piece)

    def written(self, start: int, end: int) -> str:
        """Returns the text from start to end on one line."""
        return " ".join(self.source.text[start:end].split())

    def is_order(self, name: Token, after: Token) -> bool:
        """Whether O(…), Θ(…) and the like begin here, rather than a product with a name of the count."""
        unknown = name.value == "O" or name.value not in self.known
        return name.kind == "name" and name.value in ORDERS and unknown and after.value == "("

    # Operators, by precedence

    def level(self, token: Token) -> int:
        if token.kind in ("number", "name") or token.value in (*self.CLOSING, "Σ", "frac", "binom", "begin"):
            return MULTIPLY
        level = self.LEVEL.get(token.value, 0)
        return level if level >= ADD or self.in_condition else 0

    def arithmetic(self, left: ParsedFormula, sign: Token, level: int) -> ParsedFormula:
        if sign.value not in self.LEVEL:
            self.check_reading(left, sign)
            return self.applied("*", left, self.expression(MULTIPLY + 1))
        if level == POWER:
            return self.power(left, self.deeper(sign, partial(self.expression, POWER)))
        if self.current.value == "…":
            return read_dots(self, left, cast(ArithOp, sign.value))
        right = self.expression(level + 1)
        result = self.applied(cast(ArithOp, sign.value), left, right)
        if level == ADD:
            return replace(result, summands=(*summands(left), (cast(ArithOp, sign.value), right)))
        return replace(result, quotient=sign.value in ("/", "//", "%"))

    def check_reading(self, left: ParsedFormula, token: Token) -> None:
        """Raises for products that people read in two ways."""
        before = self.tokens[self.at - 1]
        if token.kind == "number":
            raise self.error(f"write * between {before.value} and {token.value}", before.start, token.end)
        spaced = token.start > before.end
        has_name = any(isinstance(node, Name) for node, _ in walk(left.node))
        if left.quotient and (has_name or not spaced):  # 1/2 n is half of n
            shown = self.source.part(left.start, token.end)
            message = f"{shown} can be read in two ways; write * or brackets, as in (n/2)*(w + 1) or 1/(2*n)"
            raise self.error(message, left.start, token.end)

    def applied(self, op: ArithOp, left: ParsedFormula, right: ParsedFormula) -> ParsedFormula:
        if op in ("/", "//", "%") and right.node == Num(0):
            raise self.error("this divides by 0", *right.span)
        return self.piece(op, (left, right), left.start, right.end)

    def power(self, base: ParsedFormula, exponent: ParsedFormula) -> ParsedFormula:
        e = exponent.node.value if isinstance(exponent.node, Num) else None
        if e is None or not 0 <= e <= MAX_DEGREE:
            message = f"an exponent is a whole number from 0 to {MAX_DEGREE}; counts have no other powers"
            raise self.error(message, *exponent.span)
        return self.piece("^", (base, exponent), base.start, exponent.end)

    # Operands

    def opening(self, token: Token, loosest: int) -> Callable[[Token], ParsedFormula] | None:
        if token.value in ("+", "-"):
            return self.signed
        if token.value in self.CLOSING:
            return self.bracket
        if token.value in ("frac", "binom") and token.kind == "sign":
            return self.stacked
        if token.value == "Σ":
            return partial(read_sigma, self)
        if token.value == "begin":
            return self.cases
        is_defined = token.value in self.definitions and self.definitions[token.value].names
        return self.call if token.kind == "name" and (token.value in FUNCTIONS or is_defined) else None

    def leaf(self, token: Token) -> ParsedFormula:
        span = (token.start, token.end)
        if token.kind == "number":
            self.at += 1
            integer_part, _, decimals = token.value.partition(".")
            integer = self.source.integer(Token("number", integer_part + decimals, *span))
            return ParsedFormula(rational(Fraction(integer, 10 ** len(decimals)), span), *span)
        if token.kind == "name":
            self.at += 1
            if self.is_order(token, self.current):
                raise self.alone(token)
            if token.value in self.definitions:
                return self.definitions[token.value].at([], *span)
            return ParsedFormula(Name(token.value, span), *span)
        raise self.missing_operand(self.previous, token)

    def signed(self, sign: Token) -> ParsedFormula:
        arg = self.expression(NEGATE)
        if sign.value == "+":
            return arg
        return self.piece("neg", (arg,), sign.start, arg.end)

    def bracket(self, opening: Token) -> ParsedFormula:
        if self.current.value == self.CLOSING[opening.value]:
            message = "there is nothing between these brackets; write a formula there"
            raise self.error(message, opening.start, self.current.end)
        inner = self.expression(OR if opening.value == "(" else ADD)
        end = self.close(opening)
        if opening.value in ("⌊", "⌈"):
            op = "floor" if opening.value == "⌊" else "ceil"
            return self.piece(op, (inner,), opening.start, end)
        return ParsedFormula(inner.node, opening.start, end, inner.depth)

    def stacked(self, command: Token) -> ParsedFormula:
        """The two groups of a fraction or of a binomial coefficient."""
        groups: list[ParsedFormula] = []
        for _ in range(2):
            one = self.current.kind in ("number", "name") and self.current.end - self.current.start == 1
            if self.current.value != "{" and not one:
                shown = self.source.part(command.start, command.end)
                raise self.fail(f"{shown} takes two groups in braces, as in {shown}{{n}}{{2}}", command)
            groups.append(self.operand(ADD))
        top, bottom = groups
        if command.value == "binom":
            return self.binomial(top, bottom, command.start, bottom.end)
        self.applied("/", top, bottom)  # raises for a 0 below
        return self.piece("/", (top, bottom), command.start, bottom.end)

    def binomial(self, top: ParsedFormula, bottom: ParsedFormula, start: int, end: int) -> ParsedFormula:
        """The product top*(top - 1)*…/bottom! for a number at the bottom."""
        size = bottom.node.value if isinstance(bottom.node, Num) else None
        if size is None or not 1 <= size <= 8:
            raise self.error("the lower number of a binomial is a whole number from 1 to 8", *bottom.span)
        product = top
        for i in range(1, size):
            number = ParsedFormula(Num(i, bottom.span), *bottom.span)
            product = self.applied("*", product, self.applied("-", top, number))
        divisor = ParsedFormula(Num(factorial(size), bottom.span), *bottom.span)
        return self.piece("/", (product, divisor), start, end)

    def call(self, name: Token) -> ParsedFormula:
        if self.current.value not in ("(", "[", "{"):
            raise self.fail(f"write what it works on in brackets, as in {_EXAMPLE[name.value]}", name)
        args, end = self.arguments()
        if name.value in self.definitions:
            return self.defined(self.definitions[name.value], args, name, end)
        wanted = _COUNT.get(name.value)
        if len(args) != wanted if wanted else len(args) < 2:
            message = f"{name.value} is written {_EXAMPLE[name.value]}, and here it has {len(args)} parts"
            raise self.error(message, name.start, end)
        if name.value == "sum":
            return self.summed(args, name.start, end)
        if name.value == "binom":
            return self.binomial(args[0], args[1], name.start, end)
        return self.piece(cast(ArithOp, name.value), tuple(args), name.start, end)

    def defined(
        self, definition: Definition, args: list[ParsedFormula], name: Token, end: int
    ) -> ParsedFormula:
        """The formula that F(n) = … says, with these for n."""
        if len(args) != len(definition.names):
            shown = f"{name.value}({', '.join(definition.names)})"
            raise self.error(f"{shown} is defined, and here it has {len(args)} parts", name.start, end)
        return self.limited(definition.at(args, name.start, end))

    def cases(self, opening: Token) -> ParsedFormula:
        """The rows between LaTeX's begin and end of cases."""
        rows = read_rows(self, self.expression(ADD))
        if self.current.value != "end":
            raise self.left_over(self.current)
        self.at += 1
        return replace(rows, start=opening.start, end=self.tokens[self.at - 1].end)

    def summed(self, args: list[ParsedFormula], start: int, end: int) -> ParsedFormula:
        body, variable, low, high = args
        if not isinstance(variable.node, Name):
            message = "the second part of a sum is the name it runs over, as in sum(i, i, 1, n)"
            raise self.error(message, *variable.span)
        node = Sum(body.node, variable.node.name, low.node, high.node, (start, end))
        return self.deepened(node, args, start, end)

    # What was found, and whether it fits

    def piece(self, op: ArithOp, args: tuple[ParsedFormula, ...], start: int, end: int) -> ParsedFormula:
        needs = f"{op} works on numbers"
        nodes = [self.term(arg, needs) for arg in args]
        return self.deepened(applied(op, *nodes, span=(start, end)), args, start, end)

    def deepened(self, node: Formula, args: Sequence[ParsedFormula], start: int, end: int) -> ParsedFormula:
        depth = 1 + max(arg.depth for arg in args)
        self.check_depth(depth, (start, end))
        return ParsedFormula(node, start, end, depth)

    def limited(self, piece: ParsedFormula) -> ParsedFormula:
        """Returns a formula; raises if it is too long with what is defined put in, or multiplied out."""
        parts: list[Formula | Condition] = [piece.node]
        for part in parts if self.definitions else ():
            parts.extend(children(part))
            if len(parts) > MAX_SIZE:
                shown = f"with what is defined put in, this has more than {MAX_SIZE:,} parts"
                raise self.error(f"{shown}; write a smaller formula", *piece.span)
        self.expansion(piece.node, piece.span)
        return piece

    def expansion(self, node: Formula | Condition, span: Span) -> tuple[int, int]:
        """Returns bounds on the terms and the degree of a formula multiplied out, within the limits."""
        if type(node) in (Name, Num):
            return 1, int(type(node) is Name)
        span = node.span or span
        terms, degree = _expansion(node, [self.expansion(part, span) for part in children(node)])
        if degree > MAX_DEGREE:
            message = f"this has degree {degree}, and at most {MAX_DEGREE} is read"
        elif terms > MAX_TERMS and comb(self.variables + degree, degree) > MAX_TERMS:
            message = f"multiplied out, this may have more than {MAX_TERMS:,} terms; write a smaller formula"
        else:
            return terms, degree
        raise self.error(message, *span)

    def condition(self, piece: ParsedFormula) -> ParsedFormula:
        if isinstance(piece.node, Compare | And | Or):
            return piece
        raise self.error("a condition compares two formulas, as in t <= n or w divides n", *piece.span)

    def term(self, piece: ParsedFormula, needs: str) -> Term:
        if isinstance(piece.node, Compare | And | Or):
            shown = self.source.part(*piece.span)
            raise self.error(f"{shown} is a condition, not a number, and {needs}", *piece.span)
        return piece.node

    def truth(self, node: Condition, span: Span, depth: int) -> ParsedFormula:
        self.check_depth(depth, span)
        return ParsedFormula(node, *span, depth)

    def alone(self, order: Token) -> TextError:
        return self.fail(f"{order.value}(…) stands alone: put all of the formula inside it", order)

    def left_over(self, token: Token) -> TextError:
        if token.value in self.CLOSING.values():
            return self.unmatched(token)
        if token.value in _RELATIONS and token.value not in _LEFT_OVER:
            return self.fail(NO_RELATION, token)
        message = f"{token.value} cannot stand here; _ belongs to a name or a sum, as in Σ_{{i=1}}^{{n}} i"
        return self.fail(_LEFT_OVER.get(token.value, message), token)

    def missing_operand(self, before: Token | None, token: Token) -> TextError:
        if before is not None and before.value in (*_SIGNS, ",", "="):
            return self.fail(f"{before.value} has nothing after it; {_OPERAND}", before)
        if token.value in (*_SIGNS, "="):
            return self.fail(f"{token.value} has nothing before it; {_OPERAND}", token)
        if before is not None and token.kind == "end":
            return self.fail("a formula is missing after this", before)
        return self.left_over(token)


def _expansion(node: Formula | Condition, parts: list[tuple[int, int]]) -> tuple[int, int]:
    """Returns bounds on the terms and the degree of a node multiplied out, from those of its parts."""
    terms, degrees = [part[0] for part in parts], [part[1] for part in parts]
    match node:
        case Compare() | And() | Or() | Truth():
            return 1, 0
        case Arith(op="+" | "-"):
            return sum(terms), max(degrees)
        case Arith(op="*"):
            return prod(terms), sum(degrees)
        case Arith(op="^", args=(_, Num(value=e))):
            return comb(terms[0] + e - 1, e) if terms[0] <= MAX_TERMS else terms[0], degrees[0] * e
        case Sum():
            degree = degrees[2]
            limits = min(terms[0] + terms[1], MAX_TERMS)
            return terms[2] * comb(limits + degree, degree + 1), (degree + 1) * max(1, *degrees[:2])
        case _:
            return max(terms), max(degrees)
