"""Scores for the oracle: Python's own `eval`, where Python raises an error float64 arithmetic goes on (IEEE 754).

Division by zero gives an infinity or NaN, as do overflow and arguments outside a function's domain; min and max of NaN
are NaN. Independent of the score language's own parser and kernel.
"""

import ast
import math
from collections.abc import Callable, Mapping


def scorer(text: str) -> Callable[[Mapping[str, float]], float]:
    """Return a function from the values of the attributes to the score `text`."""
    tree = _Guarded().visit(ast.parse(text.strip(), mode="eval"))
    code = compile(ast.fix_missing_locations(tree), "score", "eval")
    return lambda values: float(eval(code, {"__builtins__": {}, **_FUNCTIONS, **values}))


class _Guarded(ast.NodeTransformer):
    """Makes every number a float, and calls of the operators that could raise."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        assert isinstance(node.value, int | float)
        return ast.Constant(float(node.value))

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        left, right = self.visit(node.left), self.visit(node.right)
        called = {ast.Div: "/", ast.Pow: "pow"}.get(type(node.op))
        if called:
            return ast.Call(ast.Name(called, ast.Load()), [left, right], [])
        return ast.BinOp(left, node.op, right)


def _divide(x: float, y: float) -> float:
    if y != 0.0:
        return x / y
    return math.nan if x == 0.0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1.0, y)


def _power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except (OverflowError, ValueError):
        if x < 0.0 and y % 1.0 != 0.0:
            return math.nan
        return math.copysign(math.inf, x) if y % 2.0 == 1.0 else math.inf


def _exponential(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _log1p(x: float) -> float:
    if x == -1.0:
        return -math.inf
    return math.log1p(x) if x > -1.0 else math.nan


_FUNCTIONS: dict[str, Callable[..., float]] = {
    "/": _divide,
    "abs": abs,
    "exp": _exponential,
    "log1p": _log1p,
    "max": lambda *x: math.nan if any(map(math.isnan, x)) else max(x),
    "min": lambda *x: math.nan if any(map(math.isnan, x)) else min(x),
    "pow": _power,
    "sqrt": lambda x: math.sqrt(x) if x >= 0.0 else math.nan,
}
