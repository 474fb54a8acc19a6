"""What is asked wrongly is told before anything begins."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from services.produce.generate import Manner
from services.produce.settings import ProduceSettings, read_settings


def test_files_and_a_definitions_file() -> None:
    words = ["--definitions", "d.yaml", "--input", "a.csv", "--input", "b.csv", "--speed", "600"]
    expected = ProduceSettings(definitions=Path("d.yaml"), input=(Path("a.csv"), Path("b.csv")), speed=600.0)
    assert read_settings(words) == expected


def test_rows_made_up_for_a_group_of_control() -> None:
    words = ["--group", "factory", "--generate", "--rate", "0", "--rows", "5", "--objects", "3", "--seed", "1"]
    words += ["--begin", "2026-07-01", "-o", "json"]
    found = read_settings(words)
    assert (found.group, found.generate, found.rate, found.rows, found.objects) == ("factory", True, 0.0, 5, 3)
    assert (found.begin, found.output) == (datetime(2026, 7, 1, tzinfo=UTC), "json")
    assert found.manner == Manner()


def test_what_made_up_rows_are_like() -> None:
    found = read_settings(["--group", "g", "--generate", "--bursts", "10", "--correlation", "0.5", "--cycle", "1d"])
    assert found.manner == Manner(bursts=10.0, correlation=0.5, cycle_us=86_400_000_000)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--generate", "one of the arguments --definitions --group is required"),
        ("--definitions d --group g --generate", "not allowed with"),
        ("--group g", "one of both"),
        ("--group g --generate --input a.csv", "one of both"),
        ("--group g --generate --rate -1", "must be at least 0"),
        ("--group g --generate --rows 0", "must be at least 1"),
        ("--group g --generate --begin soon", "soon is no time"),
    ],
)
def test_what_is_wrong_is_said(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        read_settings(words.split())
    assert ended.value.code == 2
    assert said in capsys.readouterr().err
