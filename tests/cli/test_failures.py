"""From errors to sentences and exit codes."""

import pytest

from skyband.cli.failures import exit_code, sentence, wrong_option
from skyband.errors import (
    CapacityError,
    ConflictError,
    DefinitionError,
    InputError,
    LogError,
    NotFoundError,
    NotServedError,
    SkybandError,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("x"), 1),
        (LogError("x"), 1),
        (CapacityError("x"), 1),
        (ConflictError("x"), 1),
        (SkybandError("x"), 1),
        (OSError(28, "No space left on device"), 1),
        (DefinitionError("x"), 2),
        (NotServedError("x"), 2),
        (NotFoundError("x"), 2),
        (KeyboardInterrupt(), 130),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_each_error_has_its_exit_code(error: BaseException, code: int) -> None:
    assert exit_code(error) == code


def test_the_mark_stands_under_what_is_wrong_without_the_indentation_of_the_file() -> None:
    text = "        score: 0.7*temperature + speed"
    error = DefinitionError("uses 'speed'", source_text=text, column=text.index("speed"), length=5, place="f.yaml:9:34")
    assert sentence(error, 80).split("\n") == [
        "f.yaml:9:34: uses 'speed'",
        "    score: 0.7*temperature + speed",
        "                             ^^^^^",
    ]


@pytest.mark.parametrize("column", [0, 30, 100, 195])
def test_a_long_line_is_cut_around_the_mark(column: int) -> None:
    text = "".join(chr(ord("a") + place % 26) for place in range(200))
    shown, marks = sentence(DefinitionError("x", source_text=text, column=column, length=5), 60).split("\n")[1:]
    assert len(shown) <= 60
    marked = shown[marks.index("^") : marks.rindex("^") + 1].strip("…")
    assert marked
    assert marked in text[column : column + 5]
    assert ("…" in shown[:6], "…" in shown[6:]) == (column > 20, column < 190)


def test_an_error_of_the_system_names_the_file() -> None:
    assert sentence(PermissionError(13, "Permission denied", "/tmp/x")) == "/tmp/x: permission denied"
    assert sentence(OSError(28, "No space left on device")) == "cannot go on: no space left on device"


def test_an_option_that_is_wrong_is_shown_as_it_was_typed() -> None:
    assert sentence(wrong_option(DefinitionError("shards must be 1", field="shards"), "--shards 0")) == (
        "--shards 0: shards must be 1"
    )
