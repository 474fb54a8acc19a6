"""Cells that are text: which times and numbers they mean, alone and among others."""

import math
from pathlib import Path

import numpy as np
import pytest

from skyband.files.rows import open_rows
from skyband.model.source_rows import Reason
from tests.files.rows_factory import single, write


@pytest.mark.parametrize(
    ("text", "time_us"),
    [
        ("0", 0),
        ("-5", -5),
        ("+5", 5),
        ("007", 7),
        (" 12 ", 12),
        ("1700000000000000.0", 1_700_000_000_000_000),
        ("1.7e15", 1_700_000_000_000_000),
        ("9223372036854775807", 2**63 - 1),
        ("2013-07-10", 1_373_414_400_000_000),
        ("2013-07-10T18:40", 1_373_481_600_000_000),
        ("2013-07-10 18:40:00", 1_373_481_600_000_000),
        ("2013-07-10T18:40:00Z", 1_373_481_600_000_000),
        ("2013-07-10t18:40:00z", 1_373_481_600_000_000),
        ("2013-07-10T20:40:00+02:00", 1_373_481_600_000_000),
        ("2013-07-10T20:40:00+0200", 1_373_481_600_000_000),
        ("2013-07-10T20:40:00+02", 1_373_481_600_000_000),
        ("2013-07-10T18:40:00.5Z", 1_373_481_600_500_000),
        ("2013-07-10T18:40:00,5", 1_373_481_600_500_000),
        ("2013-07-10T18:40:00.123456789", 1_373_481_600_123_456),
        ("1969-12-31T23:59:59.9999999", -1),
        ("2013-07-10T18", 1_373_479_200_000_000),
        ("2013-07-10T184000", 1_373_481_600_000_000),
        ("2013-07-10T1840Z", 1_373_481_600_000_000),
        ("2013-W28-3", 1_373_414_400_000_000),
        ("20130710T184000Z", 1_373_481_600_000_000),
    ],
)
def test_a_time_reads_the_same_alone_and_among_others(tmp_path: Path, text: str, time_us: int) -> None:
    others = ["17", "2013-07-10T18:40:00Z", "2013-07-10T18:40:00", "yesterday"]
    for before in ([], *([other] for other in others), others):
        for after in ([], others):
            cells = [*before, text, *after]
            lines = "".join(f'"{cell}",o,1\n' for cell in cells)
            file = write(tmp_path / "rows.csv", "event_time,object_id,value\n" + lines)
            (chunk,) = open_rows(single(), file)
            assert chunk.rows.event_time_us[len(before)] == time_us
            assert [label == Reason.BAD_TIME for label in chunk.rows.reason.tolist()] == [
                cell == "yesterday" for cell in cells
            ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "yesterday",
        "0x10",
        "1_000",
        "1.5",
        "nan",
        "inf",
        "9223372036854775808",
        "2013-02-30",
        "2013-07-10T25:00",
        "2013-07-10T18:40:60Z",
        "١٧",
        "1e40",
        "2013-7-1",
        "18:40",
        "True",
    ],
)
def test_no_time_is_a_bad_time_alone_and_among_others(tmp_path: Path, text: str) -> None:
    for others in ([], ["17"], ["2013-07-10T18:40:00Z"], ["2013-07-10"], ["17", "2013-07-10"]):
        lines = "".join(f'"{cell}",o,1\n' for cell in [*others, text])
        file = write(tmp_path / "rows.csv", "event_time,object_id,value\n" + lines)
        (chunk,) = open_rows(single(), file)
        assert chunk.rows.reason.tolist() == [0] * len(others) + [Reason.BAD_TIME]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1.0),
        (" 2.5 ", 2.5),
        ("+3", 3.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("-0", -0.0),
        ("1e999", math.inf),
        ("-inf", -math.inf),
        ("9007199254740993", 9007199254740992.0),
        ("0.1", 0.1),
        ("5e-324", 5e-324),
        ("1e-400", 0.0),
        ("abc", None),
        ("", None),
        (" ", None),
        ("1_0", None),
        ("0x10", None),
        ("true", None),
        ("1,5", None),
        ("١", None),
        ("1 2", None),
        ("--1", None),
    ],
)
def test_a_number_reads_the_same_alone_and_among_others(tmp_path: Path, text: str, value: float | None) -> None:
    for others in ([], ["7"], ["abc"], ["7", " 8"]):
        lines = "".join(f'1,o,"{cell}"\n' for cell in [*others, text])
        file = write(tmp_path / "rows.csv", "event_time,object_id,value\n" + lines)
        (chunk,) = open_rows(single(), file)
        assert chunk.rows.reason[-1] == (Reason.ACCEPTED if value is not None else Reason.UNDECODABLE)
        if value is not None:
            assert chunk.rows.values[-1, 0].tobytes() == np.float64(value).tobytes()
