"""Scores: the expression that ranks objects, read from text into a program for a stack machine.

The language is a small part of Python's: names of attributes, finite numbers, ``+ - * /``, unary ``-`` and ``+``,
``x ** c`` and the functions of `FUNCTIONS`. All of it is float64, in the written order; nothing is reassociated.

A *program* is postfix: each row of `Score.code` is (opcode, operand). The operand of ``CONSTANT`` and ``POW`` points
into `Score.constants`, that of ``ATTRIBUTE`` into the attributes given to `parse_score`; others have none (0).
"""

import ast
import difflib
import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from skyband.errors import DefinitionError

__all__ = ["FUNCTIONS", "MAX_OPERATIONS", "MAX_TEXT", "Opcode", "Score", "is_odd", "parse_score", "power"]

MAX_TEXT = 1_000
MAX_OPERATIONS = 200


class Opcode(IntEnum):
    """One step of a program. Leaves come first, then what replaces the top, then what joins the upper two."""

    CONSTANT = 0
    ATTRIBUTE = 1
    NEGATE = 2
    ABS = 3
    SQRT = 4
    LOG1P = 5
    EXP = 6
    POW = 7
    ADD = 8
    SUBTRACT = 9
    MULTIPLY = 10
    DIVIDE = 11
    MIN = 12
    MAX = 13


FUNCTIONS = {
    "abs": Opcode.ABS,
    "exp": Opcode.EXP,
    "log1p": Opcode.LOG1P,
    "max": Opcode.MAX,
    "min": Opcode.MIN,
    "pow": Opcode.POW,
    "sqrt": Opcode.SQRT,
}
_OPERATORS: dict[type[ast.operator], Opcode] = {
    ast.Add: Opcode.ADD,
    ast.Sub: Opcode.SUBTRACT,
    ast.Mult: Opcode.MULTIPLY,
    ast.Div: Opcode.DIVIDE,
}
_REFUSED_OPERATORS: dict[type[ast.AST], str] = {
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitOr: "|",
    ast.BitAnd: "&",
    ast.BitXor: "^",
    ast.Invert: "~",
    ast.Not: "not",
}
_REFUSED_NODES: dict[type[ast.expr], str] = {
    ast.Compare: "a comparison",
    ast.BoolOp: "'and' or 'or'",
    ast.IfExp: "a condition",
    ast.Lambda: "a lambda",
    ast.Attribute: "a dotted name",
    ast.Subscript: "an index",
    ast.List: "a list",
    ast.Tuple: "a tuple",
    ast.Set: "a set",
    ast.Dict: "a dictionary",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.NamedExpr: "an assignment",
    ast.Starred: "a starred argument",
}
_REFUSED_CHARACTERS = {"#": "a comment", "'": "text in quotes", '"': "text in quotes", "\\": "a backslash"}
_LANGUAGE = "a score has names, numbers, + - * / **, " + ", ".join(FUNCTIONS)
_WORD = re.compile(r"\w+|.")


@dataclass(frozen=True, slots=True)
class Score:
    """A score that has been read and checked.

    `attributes` are the names it uses, in the order of the attributes given to `parse_score`, and `attribute_indexes`
    their places there. The arrays are never written; they are not marked read-only because numba would compile every
    kernel a second time for read-only arrays. `stack_size` is the scratch space, in float64, that an evaluation needs.
    """

    text: str
    attributes: tuple[str, ...]
    attribute_indexes: tuple[int, ...]
    code: npt.NDArray[np.int32] = field(compare=False, repr=False)
    constants: npt.NDArray[np.float64] = field(compare=False, repr=False)
    stack_size: int = field(compare=False, repr=False)


def parse_score(text: str, attributes: Sequence[str], *, owner: str = "the group", noun: str = "stream") -> Score:
    """Read `text` as a score over `attributes`.

    `owner` and `noun` word the messages: "... is not a stream of group 'factory'". Raises DefinitionError with the
    column, in characters, of the part that is refused. Cost: about 20 us per name, number and operation.
    """
    return _Reader(text, attributes, owner, noun).read()


def power(x: float, exponent: float) -> float:
    """Return x to the power `exponent` as C's pow does: infinities and NaN instead of errors."""
    try:
        return math.pow(x, exponent)
    except OverflowError:
        return -math.inf if x < 0.0 and is_odd(exponent) else math.inf
    except ValueError:
        if x != 0.0:
            return math.nan
        return math.copysign(math.inf, x) if is_odd(exponent) else math.inf


def is_odd(number: float) -> bool:
    """Return whether `number`, finite, is an odd integer."""
    return math.fmod(number, 2.0) in (-1.0, 1.0)


class _Reader:
    """Turns one text into a program.

    `_source` is the text with every white space a blank, and its start cut off, so that Python reads one line; `_shift`
    is the length of the cut. The program grows as the tree is walked, operands before their operation.
    """

    def __init__(self, text: str, attributes: Sequence[str], owner: str, noun: str) -> None:
        self._text = text
        self._attributes = tuple(attributes)
        # Python normalises the names it reads, so "µ" must be looked up as "μ".
        self._index = {unicodedata.normalize("NFKC", name): i for i, name in enumerate(self._attributes)}
        self._owner = owner
        self._noun = noun
        blank = "".join(" " if character.isspace() else character for character in text)
        self._source = blank.strip()
        self._shift = len(blank) - len(blank.lstrip())
        self._code: list[tuple[int, int]] = []
        self._constants: list[float] = []
        self._used: set[int] = set()
        self._depth = 0
        self._stack_size = 0

    def read(self) -> Score:
        self._check_text()
        tree = self._parse()
        operations = sum(
            len(node.args) if isinstance(node, ast.Call) else isinstance(node, ast.BinOp | ast.UnaryOp)
            for node in ast.walk(tree)
        )
        if operations > MAX_OPERATIONS:
            self._refuse(f"score has {operations} operations; at most {MAX_OPERATIONS} are allowed")
        try:
            self._visit(tree)
        except RecursionError:
            self._refuse("score is nested too deeply; write it with fewer parentheses")
        if not self._used:
            names = ", ".join(self._attributes[:10])
            self._refuse(f"score names no {self._noun}, so all objects would be equal; name at least one of {names}")
        used = tuple(sorted(self._used))
        return Score(
            text=self._text,
            attributes=tuple(self._attributes[i] for i in used),
            attribute_indexes=used,
            code=np.array(self._code, dtype=np.int32).reshape(-1, 2),
            constants=np.array(self._constants, dtype=np.float64),
            stack_size=self._stack_size,
        )

    def _check_text(self) -> None:
        if not self._source:
            self._refuse(f"score is empty; write an expression over the {self._noun}s of {self._owner}")
        if len(self._text) > MAX_TEXT:
            self._refuse(f"score has {len(self._text):,} characters; at most {MAX_TEXT:,} are allowed")
        for column, character in enumerate(self._source):
            if what := _REFUSED_CHARACTERS.get(character):
                self._refuse_at(f"score contains {what}; {_LANGUAGE}", column, 1)

    def _parse(self) -> ast.expr:
        try:
            return ast.parse(self._source, mode="eval").body
        except SyntaxError as error:
            self._refuse_syntax(error)
        except (RecursionError, MemoryError):
            self._refuse("score is nested too deeply; write it with fewer parentheses and signs")
        except ValueError:
            self._refuse("score contains a character that is not text")

    def _refuse_syntax(self, error: SyntaxError) -> NoReturn:
        # Python says offset 0 where the text ends too early.
        column = (error.offset or len(self._source) + 1) - 1
        if "too many nested parentheses" in error.msg:
            self._refuse_at("score is nested too deeply; write it with fewer parentheses", column, 1)
        if column >= len(self._source):
            self._refuse_at("score ends where a value is expected", len(self._source), 1)
        found = _WORD.match(self._source, column)
        word = found.group() if found else self._source[column]
        if "was never closed" in error.msg:
            self._refuse_at(f"score has '{word}' without its closing partner", column, 1)
        if error.end_offset and error.end_offset - 1 > column and error.end_lineno == error.lineno:
            word = self._source[column : error.end_offset - 1]
        self._refuse_at(f"score cannot be read at {_quoted(word)}; {_LANGUAGE}", column, len(word))

    def _visit(self, node: ast.expr) -> None:
        match node:
            case ast.Constant():
                self._push_constant(self._number(node))
            case ast.Name():
                self._push_name(node)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant() as operand):
                self._push_constant(-self._number(operand))
            case ast.UnaryOp(op=ast.USub()):
                self._visit(node.operand)
                self._code.append((Opcode.NEGATE, 0))
            case ast.UnaryOp(op=ast.UAdd()):
                self._visit(node.operand)
            case ast.UnaryOp():
                self._refuse_operator(_REFUSED_OPERATORS[type(node.op)], node, node)
            case ast.BinOp(op=ast.Pow()):
                self._visit_power(node.left, node.right)
            case ast.BinOp():
                self._visit_binary(node)
            case ast.Call():
                self._visit_call(node)
            case _:
                what = _REFUSED_NODES.get(type(node), "an expression of another kind")
                self._refuse(f"score contains {what}, {self._segment(node)}; {_LANGUAGE}", node)

    def _visit_binary(self, node: ast.BinOp) -> None:
        opcode = _OPERATORS.get(type(node.op))
        if opcode is None:
            self._refuse_operator(_REFUSED_OPERATORS[type(node.op)], node, node.left)
        self._visit(node.left)
        self._visit(node.right)
        self._join(opcode)

    def _visit_power(self, base: ast.expr, exponent: ast.expr) -> None:
        value = self._constant(exponent)
        if value is None:
            self._refuse("pow needs a constant exponent, such as 2 or -0.5", exponent)
        if not math.isfinite(value):
            self._refuse("pow needs a finite exponent", exponent)
        self._visit(base)
        self._code.append((Opcode.POW, len(self._constants)))
        self._constants.append(value)

    def _visit_call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else None
        opcode = FUNCTIONS.get(name or "")
        if name is None or (opcode is None and name in self._index):
            called = self._segment(node.func)
            self._refuse(f"score calls {called}, which is no function; write * to multiply", node.func)
        if opcode is None:
            self._refuse(f"score calls '{name}', which is not known; functions are {', '.join(FUNCTIONS)}", node.func)
        if node.keywords:
            self._refuse(f"score names an argument of {name}; write the value alone", node.keywords[0])
        count = len(node.args)
        if opcode in (Opcode.MIN, Opcode.MAX):
            if count < 2:
                self._refuse(f"{name} takes 2 or more arguments, not {count}", node)
            self._visit(node.args[0])
            for argument in node.args[1:]:
                self._visit(argument)
                self._join(opcode)
            return
        expected = 2 if opcode is Opcode.POW else 1
        if count != expected:
            self._refuse(f"{name} takes {expected} argument{'s' * (expected - 1)}, not {count}", node)
        if opcode is Opcode.POW:
            self._visit_power(node.args[0], node.args[1])
        else:
            self._visit(node.args[0])
            self._code.append((opcode, 0))

    def _constant(self, node: ast.expr) -> float | None:
        """Return the value of an exponent made of numbers, signs and + - * / alone, such as 1/3; else None."""
        match node:
            case ast.Constant():
                return self._number(node)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                value = self._constant(node.operand)
                return -value if value is not None and isinstance(node.op, ast.USub) else value
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div()):
                left, right = self._constant(node.left), self._constant(node.right)
                if left is None or right is None:
                    return None
                match node.op:
                    case ast.Add():
                        return left + right
                    case ast.Sub():
                        return left - right
                    case ast.Mult():
                        return left * right
                return left / right if right != 0.0 else math.nan
        return None

    def _number(self, node: ast.Constant) -> float:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            self._refuse(f"score contains {self._segment(node)}, which is not a number", node)
        try:
            value = float(node.value)
        except OverflowError:
            value = math.inf
        if math.isinf(value):
            self._refuse(f"score contains {self._segment(node)}, which is too large for a 64-bit float", node)
        return value

    def _push_constant(self, value: float) -> None:
        self._push(Opcode.CONSTANT, len(self._constants))
        self._constants.append(value)

    def _push_name(self, node: ast.Name) -> None:
        index = self._index.get(node.id)
        if index is None:
            self._refuse_name(node)
        self._used.add(index)
        self._push(Opcode.ATTRIBUTE, index)

    def _push(self, opcode: Opcode, operand: int) -> None:
        self._code.append((opcode, operand))
        self._depth += 1
        self._stack_size = max(self._stack_size, self._depth)

    def _join(self, opcode: Opcode) -> None:
        self._code.append((opcode, 0))
        self._depth -= 1

    def _refuse_name(self, node: ast.Name) -> NoReturn:
        if node.id in FUNCTIONS:
            self._refuse(f"score uses {node.id} without arguments; write {node.id}(...)", node)
        known, hidden = self._attributes[:10], len(self._attributes) - 10
        names = ", ".join(known) + (f" and {hidden} more" if hidden > 0 else "")
        article = "an" if self._noun[:1] in "aeiou" else "a"
        message = (
            f"score uses '{node.id}', which is not {article} {self._noun} of {self._owner}; {self._noun}s are {names}"
        )
        close = difflib.get_close_matches(node.id, self._attributes, n=1)
        self._refuse(message + (f"; did you mean '{close[0]}'?" if close else ""), node)

    def _refuse_operator(self, symbol: str, node: ast.expr, before: ast.expr) -> NoReturn:
        # An operator has no place of its own in the tree: blanks and parentheses stand between it and its left side.
        start = self._span(node)[0] if before is node else sum(self._span(before))
        self._refuse_at(
            f"score uses '{symbol}', which is not known; {_LANGUAGE}", self._source.index(symbol, start), len(symbol)
        )

    def _refuse(self, message: str, node: ast.expr | ast.keyword | None = None) -> NoReturn:
        if node is None:
            raise DefinitionError(message, field="score", source_text=self._text)
        self._refuse_at(message, *self._span(node))

    def _refuse_at(self, message: str, column: int, length: int) -> NoReturn:
        raise DefinitionError(
            message, field="score", source_text=self._text, column=column + self._shift, length=max(1, length)
        ) from None

    def _span(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        """Return first character and length in `_source`; the tree counts UTF-8 bytes."""
        encoded = self._source.encode()
        start = len(encoded[: node.col_offset].decode())
        return start, len(encoded[: node.end_col_offset].decode()) - start

    def _segment(self, node: ast.expr) -> str:
        start, length = self._span(node)
        return _quoted(self._source[start : start + length])


def _quoted(text: str) -> str:
    return f"'{text}'" if len(text) <= 40 else f"'{text[:37]}...'"
