"""``skyband definitions check``."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from skyband.cli.definitions import lines
from skyband.files.definitions import load_definitions
from tests.cli.conftest import Answer

Call = Callable[..., Answer]

GOOD = """\
group:
  name: factory
  pane: 1s
  streams:
    - {name: temperature, lo: 0, hi: 100, max_delay: 2s}
    - {name: vibration, lo: 0, hi: 10, aggregate: latest, late: drop}
queries:
  - name: hottest
    k: 10
    score: 0.7*temperature + 3*vibration
    window: {size: 60s, slide: 10s}
"""


def test_what_loads_is_shown_with_its_plan_and_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "factory.yaml"
    file.write_text(GOOD)
    shown = {name: (kind, text) for kind, name, text in lines(load_definitions(file))}
    assert shown["temperature"] == ("stream", "0 to 100 · combined by best · up to 2s out of order")
    assert shown["vibration"] == ("stream", "0 to 10 · combined by latest · in order, late rows are dropped")
    assert shown["factory"] == ("group", "2 streams, 1 shard, keeps 1m, pane 1s")
    kind, text = shown["hottest"]
    assert kind == "query"
    assert text.startswith("10 highest, last 1m, every 10s · plan view: ")
    assert "'vibration'" in text


def test_a_table_is_for_people_and_says_what_to_do_next(call: Call, examples: Path) -> None:
    answer = call("definitions", "check", examples / "factory.yaml", "-o", "table")
    assert answer.code == 0
    assert [line.split()[0] for line in answer.out.splitlines() if line[:1].strip()] == [
        *["stream"] * 2,
        "group",
        *["query"] * 2,
    ]
    assert "skyband replay --definitions" in answer.err


def test_piped_output_is_one_object_a_file(call: Call, examples: Path) -> None:
    answer = call("definitions", "check", examples / "factory.yaml", examples / "flights.yaml")
    found = [json.loads(line) for line in answer.out.splitlines()]
    assert [Path(one["file"]).name for one in found] == ["factory.yaml", "flights.yaml"]
    assert found[1]["plans"][0]["algorithm"] == "two-tier"
    assert load_definitions({key: found[0][key] for key in ("group", "queries")}) == load_definitions(
        examples / "factory.yaml"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("3*vibration", "3*vibraton"), "score uses 'vibraton', which is not a stream"),
        (("streams:", "streems:"), "'streems'"),
        (("k: 10", "k: 0"), "k must be at least 1"),
        (("k: 10", f"k: {2**63}"), "k must be at most 1,000,000"),
        (("size: 60s", "size: 0s"), "size"),
        (("slide: 10s", "slide: 700ms"), "slide 700ms is no multiple of the group's pane 1s"),
        (("60s", "a minute"), "'a minute'"),
    ],
    ids=["unknown attribute", "typo in a key", "k 0", "k 2^63", "window 0", "slide no multiple of pane", "no duration"],
)
def test_what_is_wrong_is_one_sentence_with_a_mark_under_it(
    call: Call, tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    file = tmp_path / "factory.yaml"
    file.write_text(GOOD.replace(*change))
    answer = call("definitions", "check", file)
    sentence, text, marks = answer.err.splitlines()
    assert answer.code == 2
    assert answer.out == ""
    assert sentence.startswith(f"{file}:")
    assert said in sentence
    assert set(marks.strip()) == {"^"}
    assert text[marks.index("^")].strip()


def test_all_files_are_checked_even_if_one_is_wrong(call: Call, tmp_path: Path, examples: Path) -> None:
    answer = call("definitions", "check", tmp_path / "none.yaml", examples / "factory.yaml")
    assert answer.code == 2
    assert "there is no such file" in answer.err
    assert json.loads(answer.out)["group"]["name"] == "factory"


def test_an_unknown_format_is_refused(call: Call, examples: Path) -> None:
    answer = call("definitions", "check", examples / "factory.yaml", "-o", "xml")
    assert (answer.code, answer.err) == (2, "-o xml: no such format; use table or json\n")
