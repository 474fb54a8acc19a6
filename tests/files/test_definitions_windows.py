"""Windows that a query cannot have, and where the error points."""
# ruff: noqa: E501 - sentences as they are shown

from pathlib import Path

import pytest

from skyband.errors import DefinitionError, NotServedError
from tests.files.definition_texts import but, error_shown

# Name, file, its text, kind of error, and the error as a user sees it: place, sentence, line, carets.
CASES = [
    (
        "a window without size",
        "factory.yaml",
        but(("size: 60s, ", "")),
        DefinitionError,
        "factory.yaml:12:13: window has no size; add size: …\n    window: {slide: 10s}\n            ^^^^^^^^^^^^",
    ),
    (
        "a window of 0",
        "factory.yaml",
        but(("size: 60s", "size: 0s")),
        DefinitionError,
        "factory.yaml:12:20: window size must be above 0\n    window: {size: 0s, slide: 10s}\n                   ^^",
    ),
    (
        "a negative window",
        "factory.yaml",
        but(("size: 60s", "size: -5s")),
        DefinitionError,
        "factory.yaml:12:20: size '-5s' is no duration; write for example 250ms, 90s or 1h30m\n"
        "    window: {size: -5s, slide: 10s}\n"
        "                   ^^^",
    ),
    (
        "a duration without unit",
        "factory.yaml",
        but(("size: 60s", "size: 60")),
        DefinitionError,
        "factory.yaml:12:20: size must be a duration with its unit, not the number 60; write for example 60s\n"
        "    window: {size: 60, slide: 10s}\n"
        "                   ^^",
    ),
    (
        "a duration in words",
        "factory.yaml",
        but(("size: 60s", "size: 60 seconds")),
        DefinitionError,
        "factory.yaml:12:20: size '60 seconds' is no duration; write for example 250ms, 90s or 1h30m\n"
        "    window: {size: 60 seconds, slide: 10s}\n"
        "                   ^^^^^^^^^^",
    ),
    (
        "slide no multiple of the pane",
        "factory.yaml",
        but(("slide: 10s", "slide: 700ms")),
        DefinitionError,
        "factory.yaml:12:32: slide 700ms is no multiple of the group's pane 1s; use 1s, or set pane: 100ms on the group (a new generation)\n"
        "    window: {size: 60s, slide: 700ms}\n"
        "                               ^^^^^",
    ),
    (
        "size no multiple of the pane",
        "factory.yaml",
        but(("size: 60s", "size: 1500ms")),
        DefinitionError,
        "factory.yaml:12:20: size 1s500ms is no multiple of the group's pane 1s; use 2s, or set pane: 500ms on the group (a new generation)\n"
        "    window: {size: 1500ms, slide: 10s}\n"
        "                   ^^^^^^",
    ),
    (
        "a window above the retention",
        "factory.yaml",
        but(("size: 60s", "size: 20m")),
        DefinitionError,
        "factory.yaml:12:20: window size 20m is above the group's retention 10m; raise retention or ask for a smaller window\n"
        "    window: {size: 20m, slide: 10s}\n"
        "                   ^^^",
    ),
    (
        "a window in time and rows",
        "factory.yaml",
        but(("size: 60s, slide: 10s", "size: 60s, count: 10")),
        DefinitionError,
        "factory.yaml:12:32: window has both size and count; keep size for time, or count for rows\n"
        "    window: {size: 60s, count: 10}\n"
        "                               ^^",
    ),
    (
        "a count window over shards",
        "factory.yaml",
        but(("size: 60s, slide: 10s", "count: 10"), ("pane: 1s", "shards: 4")),
        NotServedError,
        "factory.yaml:12:21: query 'hottest' has a count window, which needs one shard; group 'factory' has 4. Make a group with shards: 1\n"
        "    window: {count: 10}\n"
        "                    ^^",
    ),
    (
        "a count of 0",
        "factory.yaml",
        but(("size: 60s, slide: 10s", "count: 0")),
        DefinitionError,
        "factory.yaml:12:21: window count must be above 0\n    window: {count: 0}\n                    ^",
    ),
    (
        "a count window that slides by time",
        "factory.yaml",
        but(("size: 60s, slide: 10s", "count: 10, slide: 10s")),
        DefinitionError,
        "factory.yaml:12:32: slide must be a whole number, not the text '10s'\n"
        "    window: {count: 10, slide: 10s}\n"
        "                               ^^^",
    ),
    (
        "a text for a window",
        "factory.yaml",
        but(("{size: 60s, slide: 10s}", "60s")),
        DefinitionError,
        "factory.yaml:12:13: window must be a mapping of keys to values, not the text '60s'\n"
        "    window: 60s\n"
        "            ^^^",
    ),
]


@pytest.mark.parametrize(
    ("file", "text", "kind", "shown"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_an_error_says_what_where_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, text: str, kind: type[DefinitionError], shown: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert error_shown(file, text) == (kind, shown)
