"""Directions and bounds hold for every float that the kernel computes, and are found where users expect them."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.errors import DefinitionError
from skyband.model.direction import Direction, directions, is_always_finite, score_bounds
from skyband.model.score import parse_score
from skyband.structures.score_kernel import evaluate_rows

NAMES = ("a", "b", "c")
FREE = (0.0, math.inf)
UNIT = (0.0, 1.0)
SIGNED = (-1.0, 1.0)
BELOW = (-5.0, -1.0)
ABOVE = (1.0, 5.0)
SMALL = (0.0, -0.0, 1e-320, 5e-324, -5e-324, 1e-16)
ENDS = (
    *SMALL,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    3.0,
    -3.0,
    10.0,
    709.8,
    745.0,
    -745.0,
    1e154,
    1e308,
    -1e308,
    math.inf,
    -math.inf,
)
EXPONENTS = (0.0, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0, 0.5, -0.5, 1 / 3, 1e-3, 0.999, 301.0, -301.0, 1e300)
SYMBOLS = {"+": Direction.RISING, "-": Direction.FALLING, "?": Direction.NEITHER, "=": Direction.CONSTANT}


@pytest.mark.parametrize(
    ("text", "bounds", "expected"),
    [
        ("0.7*a + 3*b", [UNIT, FREE], "++"),
        ("0.7*a - 3*b", [UNIT, FREE], "+-"),
        ("-a", [SIGNED], "-"),
        ("a - b", [FREE, FREE], "+-"),
        ("a*b", [FREE, FREE], "++"),
        ("2*a*b", [UNIT, FREE], "++"),
        ("a*b", [UNIT, SIGNED], "?+"),
        ("a*b", [UNIT, BELOW], "-+"),
        ("a*b", [BELOW, BELOW], "--"),
        ("-2*a", [SIGNED], "-"),
        ("a*a", [UNIT], "+"),
        ("a*a", [SIGNED], "?"),
        ("a - a", [UNIT], "?"),
        ("a + a", [SIGNED], "+"),
        ("a/b", [UNIT, ABOVE], "+-"),
        ("a/b", [SIGNED, ABOVE], "+?"),
        ("a/b", [BELOW, ABOVE], "++"),
        ("a/b", [ABOVE, BELOW], "--"),
        ("a/b", [BELOW, BELOW], "-+"),
        ("a/(1 + b)", [FREE, FREE], "+-"),
        ("a/b", [UNIT, UNIT], "??"),
        ("a/0", [ABOVE], "?"),
        ("a/4", [SIGNED], "+"),
        ("c + 1/(a - a*b)", [ABOVE, UNIT, FREE], "??+"),
        ("abs(a)", [UNIT], "+"),
        ("abs(a)", [BELOW], "-"),
        ("abs(a)", [SIGNED], "?"),
        ("min(a, b, 5)", [SIGNED, SIGNED], "++"),
        ("max(a, -b)", [SIGNED, SIGNED], "+-"),
        ("min(a, -a)", [SIGNED], "?"),
        ("sqrt(a)", [FREE], "+"),
        ("sqrt(a) + b", [SIGNED, FREE], "?+"),
        ("log1p(a)", [FREE], "+"),
        ("log1p(a)", [(-1.0, 3.0)], "+"),
        ("log1p(a)", [(-1.5, 3.0)], "?"),
        ("exp(-a)", [FREE], "-"),
        ("exp(a)", [(-math.inf, math.inf)], "+"),
        ("exp(-a)*log1p(b)", [FREE, FREE], "-+"),
        ("a**2", [UNIT], "+"),
        ("a**2", [BELOW], "-"),
        ("a**2", [SIGNED], "?"),
        ("a**3", [SIGNED], "+"),
        ("a**-1", [ABOVE], "-"),
        ("a**-1", [BELOW], "-"),
        ("a**-1", [UNIT], "?"),
        ("a**-2", [ABOVE], "-"),
        ("a**-2", [BELOW], "+"),
        ("a**-2", [UNIT], "-"),
        ("a**0.5", [FREE], "+"),
        ("a**0.5", [SIGNED], "?"),
        ("a**-0.5", [UNIT], "-"),
        ("a**0 + b", [SIGNED, UNIT], "=+"),
        ("0*a + b", [UNIT, UNIT], "=+"),
        ("0*a + b", [FREE, UNIT], "=+"),
        ("a + b", [(2.0, 2.0), UNIT], "=+"),
        ("a + 0*sqrt(b)", [UNIT, SIGNED], "+?"),
        ("1/(0*a) + b", [SIGNED, UNIT], "?+"),
        ("exp(a) - exp(b)", [FREE, UNIT], "+-"),
        ("exp(a) - exp(b)", [FREE, FREE], "??"),
        ("exp(a)/exp(b)", [UNIT, FREE], "+-"),
        ("exp(a)/exp(b)", [FREE, FREE], "??"),
        ("a*b*c", [FREE, FREE, FREE], "???"),
        ("a*b*c", [UNIT, FREE, UNIT], "+++"),
        ("a*b*c", [(0.0, 1e100)] * 3, "+++"),
    ],
)
def test_a_direction_is_found(text: str, bounds: list[tuple[float, float]], expected: str) -> None:
    found = directions(parse_score(text, NAMES), bounds)
    assert found == tuple(SYMBOLS[symbol] for symbol in expected)


@pytest.mark.parametrize(
    ("text", "bounds", "lo", "hi"),
    [
        ("0.5*a + 3*b", [UNIT, (0.0, 2.0)], 0.0, 6.5),
        ("a - b", [UNIT, UNIT], -1.0, 1.0),
        ("a*b", [(-2.0, 3.0), (-5.0, 7.0)], -15.0, 21.0),
        ("a/b", [(-2.0, 3.0), (2.0, 4.0)], -1.0, 1.5),
        ("abs(a)", [(-2.0, 1.0)], 0.0, 2.0),
        ("max(a, 0)", [(-2.0, 1.0)], 0.0, 1.0),
        ("sqrt(a)", [(-2.0, 4.0)], 0.0, 2.0),
        ("a", [FREE], 0.0, math.inf),
        ("1/a", [UNIT], -math.inf, math.inf),
        ("2*a", [FREE], 0.0, math.inf),
    ],
)
def test_bounds_of_exact_operations_are_the_extremes(
    text: str, bounds: list[tuple[float, float]], lo: float, hi: float
) -> None:
    assert score_bounds(parse_score(text, NAMES), bounds) == (lo, hi)


@pytest.mark.parametrize(
    ("text", "bounds", "lo", "hi"),
    [
        ("exp(a)", UNIT, 1.0, math.e),
        ("log1p(a)", UNIT, 0.0, math.log(2.0)),
        ("a**2", SIGNED, 0.0, 1.0),
        ("a**3", BELOW, -125.0, -1.0),
        ("a**-2", (0.5, 2.0), 0.25, 4.0),
    ],
)
def test_bounds_of_library_functions_are_close_around_the_extremes(
    text: str, bounds: tuple[float, float], lo: float, hi: float
) -> None:
    found = score_bounds(parse_score(text, NAMES), [bounds])
    assert found[0] < lo or lo == 0.0
    assert hi < found[1]
    assert found == pytest.approx((lo, hi), rel=1e-14)


@pytest.mark.parametrize(
    ("text", "bounds", "finite"),
    [
        ("3*a", [UNIT], True),
        ("a", [FREE], True),
        ("3*a", [FREE], False),
        ("exp(a)", [(0.0, 709.0)], True),
        ("exp(a)", [(0.0, 710.0)], False),
        ("log1p(a)", [(-1.0, 0.0)], False),
        ("sqrt(a)", [SIGNED], False),
        ("1/a", [UNIT], False),
        ("1/a", [ABOVE], True),
    ],
)
def test_what_can_leave_the_finite_numbers_is_known(text: str, bounds: list[tuple[float, float]], finite: bool) -> None:
    assert is_always_finite(parse_score(text, NAMES), bounds) is finite


def test_a_flipped_direction_is_that_of_the_negated_score() -> None:
    bounds = [UNIT, SIGNED, (3.0, 3.0)]
    for text in ("a*b + c", "a - b + c", "c - a*(2 + b)"):
        negated = directions(parse_score(f"-({text})", NAMES), bounds)
        assert tuple(found.flipped() for found in directions(parse_score(text, NAMES), bounds)) == negated


@pytest.mark.parametrize(
    "bounds", [(1.0, 0.0), (math.nan, 1.0), (0.0, math.nan), (math.inf, math.inf), (-math.inf, -math.inf)]
)
def test_bounds_around_no_number_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(DefinitionError, match="attribute 'a' has no number between"):
        directions(parse_score("a", NAMES), [bounds])


expressions = st.recursive(
    st.sampled_from(NAMES) | st.sampled_from(("0.0", "1.0", "0.1", "1e308", "5e-324", "1e-300", "-1.0", "-0.0", "7.0")),
    lambda inner: st.one_of(
        st.builds("({}) {} ({})".format, inner, st.sampled_from("+-*/"), inner),
        st.builds("{}({})".format, st.sampled_from(("-", "abs", "sqrt", "log1p", "exp")), inner),
        st.builds("({}) ** {!r}".format, inner, st.sampled_from(EXPONENTS)),
        st.builds("{}({}, {})".format, st.sampled_from(("min", "max")), inner, inner),
    ),
    max_leaves=8,
)
ends = st.sampled_from(ENDS) | st.floats(-10, 10) | st.floats(allow_nan=False)
intervals = (
    st.tuples(ends, ends)
    .map(lambda pair: (min(pair), max(pair)))
    .filter(lambda pair: pair[0] < math.inf and pair[1] > -math.inf)
)


def value_within(rng: random.Random, lo: float, hi: float) -> float:
    """Return a finite value in [lo, hi], often at an end, next to one, or special."""
    lo, hi = max(lo, -math.nextafter(math.inf, 0)), min(hi, math.nextafter(math.inf, 0))
    match rng.randrange(5):
        case 0:
            value = rng.choice((lo, hi))
        case 1:
            value = math.nextafter(rng.choice((lo, hi, *ENDS)), rng.choice((-math.inf, math.inf)))
        case 2:
            value = rng.choice(ENDS)
        case 3:
            value = rng.uniform(max(lo, -10.0), min(hi, 10.0))
        case _:
            share = rng.random()
            value = lo * share + hi * (1.0 - share)
    value = min(max(value, lo), hi)
    return -value if value == 0.0 and lo <= -0.0 and rng.random() < 0.5 else value


def check_claims(text: str, bounds: list[tuple[float, float]], seed: int) -> None:
    """Compare directions, bounds and finiteness of `text` with 3 chains of values per attribute."""
    score = parse_score(text, NAMES)
    bounds = [bounds[index] for index in score.attribute_indexes]
    rng = random.Random(seed)
    lo, hi = score_bounds(score, bounds)
    finite = is_always_finite(score, bounds)
    for position, direction in enumerate(directions(score, bounds)):
        for _ in range(3):
            columns = np.zeros((24, len(NAMES)))
            for other, index in enumerate(score.attribute_indexes):
                columns[:, index] = value_within(rng, *bounds[other])
            chain = sorted(value_within(rng, *bounds[position]) for _ in range(12))
            chain = sorted([*chain, *(min(math.nextafter(value, math.inf), max(chain)) for value in chain)])
            columns[:, score.attribute_indexes[position]] = chain
            scores = evaluate_rows(score.code, score.constants, score.stack_size, columns)
            numbers = scores[~np.isnan(scores)]
            assert ((numbers >= lo) & (numbers <= hi)).all(), (lo, hi, columns, scores)
            assert not finite or np.isfinite(scores).all()
            if direction is Direction.NEITHER:
                continue
            assert len(numbers) in (0, len(scores)), "a number became NaN along an attribute that has a direction"
            falls, rises = (numbers[1:] < numbers[:-1]).any(), (numbers[1:] > numbers[:-1]).any()
            assert not (falls and direction is not Direction.FALLING), (columns, scores)
            assert not (rises and direction is not Direction.RISING), (columns, scores)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(expressions, st.tuples(intervals, intervals, intervals), st.integers(0, 2**32))
def test_no_float_contradicts_a_claim(text: str, bounds: tuple[tuple[float, float], ...], seed: int) -> None:
    check_claims(f"({text}) + 0*a", list(bounds), seed)
    check_claims(f"min({text}, a)", list(bounds), seed)


@pytest.mark.parametrize(
    "bounds", [FREE, UNIT, SIGNED, ABOVE, BELOW, (1e-320, 1e-300), (-math.inf, math.inf), (-1.0, 800.0)]
)
@pytest.mark.parametrize(
    "text",
    [
        "exp(a)", "exp(-a)", "log1p(a)", "log1p(exp(a))", "sqrt(log1p(a))", "1/(2 + a)", "a*b", "a*b/(1 + c)", "a*a*a",
        "abs(a)*b", *(f"a ** {exponent!r}" for exponent in EXPONENTS), "(a - b)*c", "(1 - a)*(1 - b)",
        "min(a, b)*max(c, 1)", "exp(a) - exp(b)", "exp(a)/exp(b)", "exp(a)*b", "a*b*c", "1/(0*a) + b", "0*sqrt(a) + b",
        "a/b", "1/(a*b)", "c/(0*a + 0*b)",
    ],
)  # fmt: skip
def test_no_float_contradicts_a_claim_about_a_usual_shape(text: str, bounds: tuple[float, float]) -> None:
    for seed in range(4):
        check_claims(text, [bounds] * 3, seed)
    for seed in range(4):
        check_claims(text, [bounds, UNIT, ABOVE], seed)
