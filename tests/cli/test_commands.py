"""Options that take several values."""

import pytest

from skyband.cli.commands import spread


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("--input a b c", "--input a --input b --input c"),
        ("--input a b --input c d", "--input a --input b --input c --input d"),
        ("--input=a b", "--input=a --input b"),
        ("--input a --output b", "--input a --output b"),
        ("--definitions d --input a b -o json", "--definitions d --input a --input b -o json"),
        ("--input a b --check c", "--input a --input b --check c"),
        ("--input", "--input"),
        ("a b", "a b"),
        ("", ""),
    ],
)
def test_an_option_takes_what_follows_up_to_the_next_option(given: str, made: str) -> None:
    assert spread(given.split(), "--input") == made.split()
