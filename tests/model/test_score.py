"""What the score language takes, what it refuses, and where its errors point."""

import math

import numpy as np
import pytest

from skyband.errors import DefinitionError
from skyband.model.score import MAX_OPERATIONS, MAX_TEXT, Opcode, Score, parse_score, power

NAMES = ("temperature", "vibration", "a", "b")
LANGUAGE = "a score has names, numbers, + - * / **, abs, exp, log1p, max, min, pow, sqrt"


def steps(text: str) -> list[str]:
    """Return the program as words: names, numbers, operations, powers with their exponent."""
    score = parse_score(text, NAMES)
    words = []
    for opcode, operand in score.code.tolist():
        match Opcode(opcode):
            case Opcode.CONSTANT:
                words.append(repr(float(score.constants[operand])))
            case Opcode.ATTRIBUTE:
                words.append(NAMES[operand])
            case Opcode.POW:
                words.append(f"POW({float(score.constants[operand])!r})")
            case other:
                words.append(other.name)
    return words


def refusal(text: str, **words: str) -> DefinitionError:
    with pytest.raises(DefinitionError) as caught:
        parse_score(text, ("temperature", "vibration"), **words)
    assert caught.value.field == "score"
    assert caught.value.source_text == text
    return caught.value


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("0.7*temperature + 3*vibration", "0.7 temperature MULTIPLY 3.0 vibration MULTIPLY ADD"),
        ("a - b - a", "a b SUBTRACT a SUBTRACT"),
        ("a - (b - a)", "a b a SUBTRACT SUBTRACT"),
        ("a / b * a", "a b DIVIDE a MULTIPLY"),
        ("-a * b", "a NEGATE b MULTIPLY"),
        ("-3 * a", "-3.0 a MULTIPLY"),
        ("-0.0 + a", "-0.0 a ADD"),
        ("--3 + a", "-3.0 NEGATE a ADD"),
        ("+a", "a"),
        ("1/3*a", "1.0 3.0 DIVIDE a MULTIPLY"),
        ("min(a, b, 3)", "a b MIN 3.0 MIN"),
        ("max(a, b)", "a b MAX"),
        ("abs(sqrt(log1p(exp(a))))", "a EXP LOG1P SQRT ABS"),
        ("a ** 2", "a POW(2.0)"),
        ("-a ** 2", "a POW(2.0) NEGATE"),
        ("pow(a, -0.5)", "a POW(-0.5)"),
        ("a ** (1/4)", "a POW(0.25)"),
        ("a ** -(2 - 1*3 + 1)", "a POW(-0.0)"),
        ("2 ** 3 * a", "2.0 POW(3.0) a MULTIPLY"),
        ("  a\n\t+ b\n", "a b ADD"),
    ],
)
def test_a_program_is_the_expression_in_written_order(text: str, program: str) -> None:
    assert steps(text) == program.split()


def test_a_score_names_its_attributes_in_the_given_order() -> None:
    score = parse_score("b + a + b", ("x", "a", "y", "b"))
    assert score.attributes == ("a", "b")
    assert score.attribute_indexes == (1, 3)
    assert score.code[:, 1].tolist() == [3, 1, 0, 3, 0]
    assert score.code.dtype == np.int32
    assert score.constants.dtype == np.float64


@pytest.mark.parametrize(
    ("text", "size"), [("a", 1), ("a+b+a", 2), ("a+(b+(a+b))", 4), ("min(a,b,a,b)", 2), ("a**2", 1)]
)
def test_the_stack_is_as_deep_as_the_expression_needs(text: str, size: int) -> None:
    assert parse_score(text, NAMES).stack_size == size


def test_scores_are_equal_by_text_and_attributes() -> None:
    one, same = parse_score("a + b", NAMES), parse_score("a + b", NAMES)
    assert one == same
    assert hash(one) == hash(same)
    assert one != parse_score("a+b", NAMES)
    assert one != parse_score("a + b", ("b", "a"))
    assert parse_score("a", ("a", "b")) != parse_score("a", ("b", "a"))
    assert isinstance(one, Score)


def test_names_are_found_in_the_form_that_python_gives_them() -> None:
    assert parse_score("2*\u00b5", ("x", "\u00b5")).attributes == ("\u00b5",)


def test_a_function_name_may_also_be_an_attribute() -> None:
    assert parse_score("min(min, a)", ("min", "a")).attributes == ("min", "a")


@pytest.mark.parametrize(
    ("text", "message", "pointed"),
    [
        (
            "2*speed",
            "score uses 'speed', which is not a stream of group 'factory'; streams are temperature, vibration",
            "speed",
        ),
        (
            "vibraton + 1",
            "score uses 'vibraton', which is not a stream of group 'factory'; streams are temperature, vibration; "
            "did you mean 'vibration'?",
            "vibraton",
        ),
        (
            "1 + log(temperature)",
            "score calls 'log', which is not known; functions are abs, exp, log1p, max, min, pow, sqrt",
            "log",
        ),
        ("temperature(2)", "score calls 'temperature', which is no function; write * to multiply", "temperature"),
        ("2(vibration)", "score calls '2', which is no function; write * to multiply", "2"),
        ("math.sqrt(vibration)", "score calls 'math.sqrt', which is no function; write * to multiply", "math.sqrt"),
        ("1 + sqrt", "score uses sqrt without arguments; write sqrt(...)", "sqrt"),
        ("vibration**temperature", "pow needs a constant exponent, such as 2 or -0.5", "temperature"),
        ("pow(2, vibration + 1)", "pow needs a constant exponent, such as 2 or -0.5", "vibration + 1"),
        ("vibration ** (1/0)", "pow needs a finite exponent", "1/0"),
        ("vibration ** 2 ** 3", "pow needs a constant exponent, such as 2 or -0.5", "2 ** 3"),
        ("pow(vibration)", "pow takes 2 arguments, not 1", "pow(vibration)"),
        ("sqrt(vibration, 2)", "sqrt takes 1 argument, not 2", "sqrt(vibration, 2)"),
        ("1 + max(vibration)", "max takes 2 or more arguments, not 1", "max(vibration)"),
        ("exp()", "exp takes 1 argument, not 0", "exp()"),
        ("max(vibration, key=abs)", "score names an argument of max; write the value alone", "key=abs"),
        ("vibration // 2", f"score uses '//', which is not known; {LANGUAGE}", "//"),
        ("(vibration) % 2", f"score uses '%', which is not known; {LANGUAGE}", "%"),
        ("2 + ~vibration", f"score uses '~', which is not known; {LANGUAGE}", "~"),
        ("not vibration", f"score uses 'not', which is not known; {LANGUAGE}", "not"),
        ("1 < vibration < 2", f"score contains a comparison, '1 < vibration < 2'; {LANGUAGE}", "1 < vibration < 2"),
        ("lambda: 1", f"score contains a lambda, 'lambda: 1'; {LANGUAGE}", "lambda: 1"),
        ("1 + vibration.real", f"score contains a dotted name, 'vibration.real'; {LANGUAGE}", "vibration.real"),
        ("vibration[0]", f"score contains an index, 'vibration[0]'; {LANGUAGE}", "vibration[0]"),
        ("vibration, 1", f"score contains a tuple, 'vibration, 1'; {LANGUAGE}", "vibration, 1"),
        ("abs([1])", f"score contains a list, '[1]'; {LANGUAGE}", "[1]"),
        ("min(1, *vibration)", f"score contains a starred argument, '*vibration'; {LANGUAGE}", "*vibration"),
        (
            "1 if vibration else 2",
            f"score contains a condition, '1 if vibration else 2'; {LANGUAGE}",
            "1 if vibration else 2",
        ),
        ("vibration or 2", f"score contains 'and' or 'or', 'vibration or 2'; {LANGUAGE}", "vibration or 2"),
        ("(x := 3)", f"score contains an assignment, 'x := 3'; {LANGUAGE}", "x := 3"),
        ("vibration + 'x'", f"score contains text in quotes; {LANGUAGE}", "'"),
        ("vibration # note", f"score contains a comment; {LANGUAGE}", "#"),
        ("vibration + True", "score contains 'True', which is not a number", "True"),
        ("vibration + 2j", "score contains '2j', which is not a number", "2j"),
        ("vibration + ...", "score contains '...', which is not a number", "..."),
        ("vibration + None", "score contains 'None', which is not a number", "None"),
        ("1e999 * vibration", "score contains '1e999', which is too large for a 64-bit float", "1e999"),
        ("vibration + 1" + "0" * 400, "too large for a 64-bit float", "1" + "0" * 400),
        ("vibration = 3", f"score cannot be read at '='; {LANGUAGE}", None),
        ("vibration ? 3", f"score cannot be read at '?'; {LANGUAGE}", "?"),
        ("2 + (vibration", "score has '(' without its closing partner", "("),
        ("vibration)", f"score cannot be read at ')'; {LANGUAGE}", ")"),
    ],
)
def test_what_is_refused_is_named_and_pointed_at(text: str, message: str, pointed: str | None) -> None:
    error = refusal(text, owner="group 'factory'")
    assert message in str(error)
    assert error.column is not None
    if pointed is not None:
        assert text[error.column : error.column + error.length] == pointed


@pytest.mark.parametrize("refused", ["speed", "3 // \u00e9", "\u6f22", "log(2)", "\u00e9.x", "'a'", "\u00e9 \u20ac"])
@pytest.mark.parametrize("before", ["", "  ", "\n\t", "\u00e9\u00e9 + ", "\u6e29 + \u00e9*2 +\n\n "])
def test_columns_count_characters_of_the_text_as_it_was_given(before: str, refused: str) -> None:
    text = f"{before}{refused} "
    pointed = {"3 // \u00e9": "//", "log(2)": "log", "'a'": "'", "\u00e9 \u20ac": "\u20ac"}.get(refused, refused)
    with pytest.raises(DefinitionError) as caught:
        parse_score(text, ("\u00e9\u00e9", "\u00e9", "\u6e29"))
    column, length = caught.value.column, caught.value.length
    assert column is not None
    assert text[column : column + length] == pointed
    assert text.index(pointed, len(before)) == column


def test_a_score_that_stops_too_early_is_pointed_at_behind_its_end() -> None:
    error = refusal("vibration +")
    assert str(error) == "score ends where a value is expected"
    assert error.column == len("vibration +")


def test_the_words_of_a_name_error_come_from_the_caller() -> None:
    error = refusal("speed", owner="stream 'cars'", noun="attribute")
    assert str(error) == (
        "score uses 'speed', which is not an attribute of stream 'cars'; attributes are temperature, vibration"
    )


def test_long_lists_of_names_are_cut() -> None:
    with pytest.raises(DefinitionError, match=r"streams are s0, s1, .*, s9 and 90 more$"):
        parse_score("q", [f"s{i}" for i in range(100)])


@pytest.mark.parametrize("text", ["", "   ", "\n\t "])
def test_an_empty_score_is_refused(text: str) -> None:
    assert str(refusal(text)) == "score is empty; write an expression over the streams of the group"


@pytest.mark.parametrize("text", ["1", "2*3 + sqrt(4)", "2 ** 3"])
def test_a_score_without_a_name_is_refused(text: str) -> None:
    assert str(refusal(text)).startswith(
        "score names no stream, so all objects would be equal; name at least one of temp"
    )


@pytest.mark.parametrize(
    "text",
    [
        "(" * 10_000 + "vibration" + ")" * 10_000,
        "(" * 400 + "vibration" + ")" * 400,
        "-" * 990 + "vibration",
        "abs(" * 240,
        "abs(" * 190 + "speed" + ")" * 190,
        "[" * 400 + "]" * 400,
        "vibration" + "+vibration" * 99 + "+",
        "~" * 900 + "vibration",
        "vibration" + "[0" * 300 + "]" * 300,
        "vibration" + "**1" * 300,
        "\x00",
        "vibration + \ud800",
        "vibration\x00",
    ],
)
def test_hostile_text_is_refused_without_a_crash(text: str) -> None:
    refusal(text)


def test_text_and_operations_have_limits() -> None:
    names = ["v"]
    longest = "+".join(["v"] * (MAX_OPERATIONS + 1))
    assert len(parse_score(longest, names).code) == 2 * MAX_OPERATIONS + 1
    assert parse_score("v+(" * 190 + "v" + ")" * 190, names).stack_size == 191
    with pytest.raises(DefinitionError, match="201 operations; at most 200"):
        parse_score(longest + "+v", names)
    assert parse_score("v".ljust(MAX_TEXT), names).attributes == ("v",)
    with pytest.raises(DefinitionError, match="1,001 characters; at most 1,000"):
        parse_score("v".ljust(MAX_TEXT + 1), names)


@pytest.mark.parametrize(
    ("x", "exponent", "expected"),
    [
        (2.0, 3.0, 8.0),
        (0.0, -1.0, math.inf),
        (-0.0, -1.0, -math.inf),
        (-0.0, -2.0, math.inf),
        (-0.0, -0.5, math.inf),
        (-1e200, 3.0, -math.inf),
        (-1e200, 2.0, math.inf),
        (-1e-200, -3.0, -math.inf),
        (math.nan, 0.0, 1.0),
        (-math.inf, 0.5, math.inf),
    ],
)
def test_powers_outside_the_domain_are_what_c_gives(x: float, exponent: float, expected: float) -> None:
    assert power(x, exponent) == expected


def test_a_fractional_power_of_a_negative_number_is_nan() -> None:
    assert math.isnan(power(-2.0, 0.5))
