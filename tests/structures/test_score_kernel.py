"""The score kernel gives the bits of plain Python, compiled and interpreted. Run as a script, it prints its digest."""

import ast
import hashlib
import math
import random
import struct
from collections.abc import Callable, Sequence
from types import CodeType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.model.score import MAX_OPERATIONS, Score, parse_score
from skyband.structures.score_kernel import evaluate_one, evaluate_rows
from tests.interpreted import assert_same_interpreted, print_digest

NAMES = ("a", "b", "c")
NUMBERS = (0.0, 1.0, 0.5, 3.0, 0.1, 1e-320, 5e-324, 1e308, 1.7976931348623157e308, 710.0, 1e-16, 9007199254740993.0)
EXPONENTS = (0.0, 1.0, 2.0, 3.0, -1.0, -2.0, -3.0, 0.5, -0.5, 1 / 3, 1e-3, 55.5, 301.0, -301.0, 1e300)
NEGATIVE = (-0.0, -1.0, -0.5, -3.0, -1e308, -5e-324, -2.0, -745.2)
VALUES = (*NUMBERS, *NEGATIVE, 2.0, 709.782712893384, 1e154, math.inf, -math.inf, math.nan)


class Reference(float):
    """A float64 whose operators answer as IEEE 754 and C do, where Python raises."""

    def __add__(self, other: float) -> "Reference":
        return Reference(float(self) + float(other))

    def __sub__(self, other: float) -> "Reference":
        return Reference(float(self) - float(other))

    def __mul__(self, other: float) -> "Reference":
        return Reference(float(self) * float(other))

    def __neg__(self) -> "Reference":
        return Reference(-float(self))

    def __pos__(self) -> "Reference":
        return self

    def __truediv__(self, other: float) -> "Reference":
        if other != 0.0:
            return Reference(float(self) / float(other))
        if self == 0.0 or math.isnan(self):
            return Reference(math.nan)
        return Reference(math.inf if (self > 0.0) == (math.copysign(1.0, other) > 0.0) else -math.inf)

    def __pow__(self, other: float, _: None = None) -> "Reference":
        try:
            return Reference(math.pow(float(self), float(other)))
        except (OverflowError, ValueError):
            odd = float(other).is_integer() and int(other) % 2 == 1
            if self < 0.0 and not float(other).is_integer():
                return Reference(math.nan)
            return Reference(math.copysign(math.inf, self) if odd else math.inf)


def guarded(function: Callable[[float], float], fallback: Callable[[float], float]) -> Callable[[float], Reference]:
    def call(x: float) -> Reference:
        try:
            return Reference(function(float(x)))
        except (ValueError, OverflowError):
            return Reference(fallback(x))

    return call


def smallest(*values: float) -> float:
    return Reference(math.nan) if any(map(math.isnan, values)) else min(*values)


def largest(*values: float) -> float:
    return Reference(math.nan) if any(map(math.isnan, values)) else max(*values)


FUNCTIONS = {
    "number": Reference,
    "abs": guarded(abs, abs),
    "sqrt": guarded(math.sqrt, lambda x: math.nan),
    "log1p": guarded(math.log1p, lambda x: -math.inf if x == -1.0 else math.nan),
    "exp": guarded(math.exp, lambda x: math.inf),
    "pow": lambda x, c: Reference(x) ** c,
    "min": smallest,
    "max": largest,
}


class Numbers(ast.NodeTransformer):
    """Wraps every literal, so that the operators of `Reference` work on all parts."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Call(ast.Name("number", ast.Load()), [node], [])


def python_code(text: str) -> CodeType:
    return compile(ast.fix_missing_locations(Numbers().visit(ast.parse(text, mode="eval"))), "score", "eval")


def python_score(code: CodeType, row: Sequence[float]) -> float:
    value = float(eval(code, FUNCTIONS | {name: Reference(v) for name, v in zip(NAMES, row, strict=True)}))
    return 0.0 if value == 0.0 else value


def bits(value: float) -> bytes:
    return b"nan" if math.isnan(value) else struct.pack("<d", value)


def rows_of(score: Score, rows: Sequence[Sequence[float]]) -> list[float]:
    columns = np.array(rows, dtype=np.float64).reshape(-1, len(NAMES))
    return [float(value) for value in evaluate_rows(score.code, score.constants, score.stack_size, columns)]


def random_expression(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.1:
        return rng.choice(NAMES) if rng.random() < 0.7 else repr(rng.choice(NUMBERS))
    inner = random_expression(rng, depth - 1)
    match rng.randrange(4):
        case 0:
            return f"{rng.choice(('-', 'abs', 'sqrt', 'log1p', 'exp', '+'))}({inner})"
        case 1:
            exponent = rng.choice(EXPONENTS)
            return f"pow({inner}, {exponent!r})" if rng.random() < 0.5 else f"({inner}) ** {exponent!r}"
        case 2:
            return f"{rng.choice(('min', 'max'))}({inner}, {random_expression(rng, depth - 1)})"
    return f"({inner}) {rng.choice('+-*/')} ({random_expression(rng, depth - 1)})"


def corpus(seed: int, count: int) -> list[tuple[str, list[list[float]]]]:
    """Return seeded expressions, each with rows of nasty and of ordinary values."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        text = f"{random_expression(rng, rng.randrange(1, 5))} + 0*a"
        rows = [[rng.choice(VALUES) if rng.random() < 0.3 else rng.uniform(-9, 9) for _ in NAMES] for _ in range(12)]
        found.append((text, rows))
    return found


def digest() -> str:
    """Return a digest of the bits of every score of the corpus, by both entry points."""
    found = hashlib.sha256()
    for text, rows in corpus(seed=11, count=400):
        score = parse_score(text, NAMES)
        stack = np.empty(score.stack_size, dtype=np.float64)
        for row, value in zip(rows, rows_of(score, rows), strict=True):
            alone = evaluate_one(score.code, score.constants, stack, np.array(row, dtype=np.float64))
            assert bits(alone) == bits(value)
            found.update(bits(value))
    return found.hexdigest()


expressions = st.recursive(
    st.sampled_from(NAMES) | st.sampled_from(NUMBERS).map(repr) | st.floats(0, allow_infinity=False).map(repr),
    lambda inner: st.one_of(
        st.builds("({}) {} ({})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("{}({})".format, st.sampled_from(("-", "+", "abs", "sqrt", "log1p", "exp")), inner),
        st.builds("({}) ** {!r}".format, inner, st.sampled_from(EXPONENTS) | st.floats(-9, 9)),
        st.builds("{}({}, {})".format, st.sampled_from(("min", "max")), inner, inner),
        st.builds("{}({}, {}, {})".format, st.sampled_from(("min", "max")), inner, inner, inner),
    ),
    max_leaves=12,
)
values = st.sampled_from(VALUES) | st.floats() | st.floats(-10, 10)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(expressions, st.lists(st.tuples(values, values, values), min_size=1, max_size=8))
def test_any_score_has_the_bits_that_python_gives_it(text: str, rows: list[tuple[float, float, float]]) -> None:
    text = f"min({text}, a + 1e308*10, exp(b) + 1e308*10)"
    score, code = parse_score(text, NAMES), python_code(text)
    for row, value in zip(rows, rows_of(score, rows), strict=True):
        assert bits(value) == bits(python_score(code, row))


def test_a_seeded_corpus_has_the_bits_that_python_gives_it() -> None:
    finite = 0
    for text, rows in corpus(seed=5, count=400):
        score, code = parse_score(text, NAMES), python_code(text)
        for row, value in zip(rows, rows_of(score, rows), strict=True):
            assert bits(value) == bits(python_score(code, row)), (text, row)
            finite += math.isfinite(value)
    assert finite > 1_000


def test_compiled_and_interpreted_kernels_give_the_same_bits() -> None:
    assert len(assert_same_interpreted(__file__, warnings="error")) == 64


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("1/a", 0.0, math.inf),
        ("1/a", -0.0, -math.inf),
        ("-1/a", 0.0, -math.inf),
        ("a/0", 0.0, math.nan),
        ("0/a", math.nan, math.nan),
        ("a/0", math.inf, math.inf),
        ("sqrt(a)", -5e-324, math.nan),
        ("sqrt(a)", math.inf, math.inf),
        ("log1p(a)", -1.0, -math.inf),
        ("log1p(a)", -1.5, math.nan),
        ("exp(a)", 709.782712893384, math.exp(709.782712893384)),
        ("exp(a)", math.nextafter(709.782712893384, math.inf), math.inf),
        ("exp(a)", -1e9, 0.0),
        ("a**0.5", -1.0, math.nan),
        ("a**-1", -0.0, -math.inf),
        ("a**3", -1e200, -math.inf),
        ("a**0", math.nan, 1.0),
        ("min(a, 1)", math.nan, math.nan),
        ("min(1, a)", math.nan, math.nan),
        ("max(a, 1)", math.nan, math.nan),
        ("max(1, a)", math.nan, math.nan),
        ("1/min(a, 0.0)", -0.0, -math.inf),
        ("1/min(0.0, a)", -0.0, math.inf),
        ("1/max(a, 0.0)", -0.0, -math.inf),
        ("exp(a) - exp(a)", 1000.0, math.nan),
        ("a*1e308*10", 1.0, math.inf),
        ("a + 0.1 + 0.2", 0.3, 0.3 + 0.1 + 0.2),
        ("a + (0.1 + 0.2)", 0.3, 0.3 + (0.1 + 0.2)),
        ("a*a - 1", 1 + 2**-30, 2**-29),
    ],
)
def test_what_python_would_refuse_is_answered_as_ieee_and_c_do(text: str, value: float, expected: float) -> None:
    assert bits(rows_of(parse_score(text, NAMES), [(value, 0.0, 0.0)])[0]) == bits(expected)


@pytest.mark.parametrize("text", ["-a", "a*0", "a", "min(a, 0)", "a**3", "sqrt(a)", "-abs(a)"])
def test_negative_zero_never_comes_out(text: str) -> None:
    for value in rows_of(parse_score(text, NAMES), [(0.0, 0, 0), (-0.0, 0, 0)]):
        assert bits(value) == bits(0.0)


def test_the_longest_and_the_deepest_score_fit_their_stack() -> None:
    for text in ("+".join(["a"] * (MAX_OPERATIONS + 1)), "a+(" * 190 + "a" + ")" * 190):
        score = parse_score(text, NAMES)
        assert rows_of(score, [(1.0, 0, 0)]) == [text.count("a")]
        stack = np.full(score.stack_size + 1, 7.5)
        assert evaluate_one(score.code, score.constants, stack, np.array([2.0, 0, 0])) == 2.0 * text.count("a")
        assert stack[-1] == 7.5


def test_no_rows_have_no_scores() -> None:
    assert rows_of(parse_score("a+b", NAMES), []) == []


if __name__ == "__main__":
    print_digest(digest)
