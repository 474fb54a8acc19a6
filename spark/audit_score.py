"""Scores as Spark expressions that answer as float64 arithmetic does: infinities and NaN, never null, never an error.

Spark raises at a division by zero, knows no logarithm of 0, and takes the least of a number and NaN to be the number;
all that is mended here. What a mended operation names more than once becomes a column of its own, a *step*: written
out, ten nested divisions would be an expression of 60,000.
"""

import ast
import math
from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from skyband.errors import DefinitionError

__all__ = ["ScoreColumn", "is_finite"]

_NAN = float("nan")


class ScoreColumn:
    """The score `text` over columns by attribute; make one for each frame, and `add` it.

    Read from the text alone, beside the language's own parser. Raises DefinitionError for what it does not know.
    """

    def __init__(self, text: str, attributes: Mapping[str, Column]) -> None:
        self._text = text
        self._attributes = attributes
        self._steps: list[tuple[str, Column]] = []
        try:
            # -0.0 + 0.0 is 0.0.
            self._score = self._visit(ast.parse(text.strip(), mode="eval").body) + sql.lit(0.0)
        except SyntaxError as error:
            raise self._unknown(str(error)) from None

    def add(self, frame: DataFrame, name: str) -> DataFrame:
        """Return `frame` with the score as column `name`, never null."""
        for step, column in self._steps:
            frame = frame.withColumn(step, column)
        return frame.withColumn(name, self._score).drop(*[step for step, _ in self._steps])

    def _visit(self, node: ast.expr) -> Column:
        match node:
            case ast.Constant(value=int() | float() as number):
                return sql.lit(float(number))
            case ast.Name(id=name) if name in self._attributes:
                return self._attributes[name]
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return sql.lit(-float(number))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._visit(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._visit(operand)
            case ast.BinOp(op=ast.Pow(), left=base, right=exponent):
                return sql.pow(self._visit(base), sql.lit(self._number(exponent)))
            case ast.BinOp(op=ast.Div(), left=left, right=right):
                return self._divide(self._visit(left), self._visit(right), right)
            case ast.BinOp(op=operator, left=left, right=right) if type(operator) in _JOINS:
                return _JOINS[type(operator)](self._visit(left), self._visit(right))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._call(name, arguments)
        raise self._unknown(ast.unparse(node))

    def _call(self, name: str, arguments: list[ast.expr]) -> Column:
        match name, arguments:
            case "abs", [x]:
                return sql.abs(self._visit(x))
            case "sqrt", [x]:
                return sql.sqrt(self._visit(x))
            case "exp", [x]:
                return sql.exp(self._visit(x))
            case "log1p", [x]:
                return _log1p(self._step(self._visit(x), x))
            case "pow", [x, exponent]:
                return sql.pow(self._visit(x), sql.lit(self._number(exponent)))
            # Spark takes NaN to be the greatest, and of equals the first.
            case "max", [_, _, *_]:
                return sql.greatest(*map(self._visit, arguments))
            case "min", [_, _, *_]:
                return -sql.greatest(*[-self._visit(x) for x in arguments])
        raise self._unknown(name)

    def _divide(self, left: Column, right: Column, node: ast.expr) -> Column:
        if isinstance(node, ast.Constant) and node.value:
            return left / right
        below = self._step(right, node)
        is_zero = below == sql.lit(0.0)
        # Times an infinity of the zero's sign: infinite, or NaN for 0/0; times 1 changes nothing.
        return (
            left
            / sql.when(is_zero, 1.0).otherwise(below)
            * sql.when(is_zero, sql.pow(below, sql.lit(-1.0))).otherwise(1.0)
        )

    def _step(self, column: Column, node: ast.expr) -> Column:
        if isinstance(node, ast.Name | ast.Constant):
            return column
        name = f"_step_{len(self._steps)}"
        self._steps.append((name, column))
        return sql.col(name)

    def _number(self, node: ast.expr) -> float:
        """Return an exponent: a number, or what numbers alone make, such as 1/3."""
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._number(operand)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self._number(operand)
            case ast.BinOp(op=operator, left=left, right=right) if type(operator) in _NUMBERS:
                below = self._number(right)
                if below or not isinstance(operator, ast.Div):
                    return _NUMBERS[type(operator)](self._number(left), below)
        raise self._unknown(ast.unparse(node))

    def _unknown(self, what: str) -> DefinitionError:
        return DefinitionError(f"the audit does not know {what!r} in score {self._text!r}", field="score")


def is_finite(column: Column) -> Column:
    """Return whether a number is neither infinite nor NaN."""
    return sql.abs(column) < sql.lit(math.inf)


def _log1p(x: Column) -> Column:
    return sql.when(x > -1.0, sql.log1p(x)).when(x == -1.0, sql.lit(-math.inf)).otherwise(sql.lit(_NAN))


_JOINS: dict[type[ast.operator], Callable[[Column, Column], Column]] = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
}
_NUMBERS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda x, y: x + y,
    ast.Sub: lambda x, y: x - y,
    ast.Mult: lambda x, y: x * y,
    ast.Div: lambda x, y: x / y,
}
