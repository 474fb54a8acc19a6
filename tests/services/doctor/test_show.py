"""Findings as lines, and as JSON Lines; which parts are asked for."""

import json

import pytest

from services.doctor.finding import PARTS, Finding, Level, Part
from services.doctor.settings import read_settings
from services.doctor.show import as_json, line, summary


def test_a_finding_is_a_line_and_what_to_do_another_one() -> None:
    finding = Finding(Part.ALIGN, Level.WRONG, "factory/heat: its topic does not exist", "create it")
    assert line(finding).plain.splitlines() == [
        "✗ align    factory/heat: its topic does not exist",
        "             do: create it",
    ]
    assert line(Finding(Part.KAFKA, Level.OK, "it answers")).plain == "✓ kafka    it answers"
    assert json.loads(as_json(finding)) == {
        "part": "align",
        "level": "wrong",
        "text": "factory/heat: its topic does not exist",
        "do": "create it",
    }


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ([Level.OK, Level.NOTE], "all is well (2 findings)"),
        ([Level.OK, Level.WRONG], "1 thing is wrong"),
        ([Level.WRONG, Level.WRONG], "2 things are wrong"),
    ],
)
def test_the_end_tells_how_it_stands(levels: list[Level], said: str) -> None:
    assert summary(levels) == said


def test_parts_can_be_chosen() -> None:
    assert read_settings([]).parts == PARTS
    assert read_settings(["fanout", "align"]).parts == (Part.FANOUT, Part.ALIGN)


def test_what_is_no_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_settings(["kafka"])
    assert "'kafka' is no part of Skyband; parts are align, engine, fanout, control" in capsys.readouterr().err
