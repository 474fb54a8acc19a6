"""Groups and streams that a definitions file cannot have, and where the error points."""
# ruff: noqa: E501 - sentences as they are shown

from pathlib import Path

import pytest

from skyband.errors import DefinitionError, NotServedError
from tests.files.definition_texts import but, error_shown

# Name, file, its text, kind of error, and the error as a user sees it: place, sentence, line, carets.
CASES = [
    (
        "unknown key in braces",
        "factory.yaml",
        but(("max_delay", "max-delay")),
        DefinitionError,
        "factory.yaml:6:43: stream 'temperature' has no key 'max-delay'; did you mean max_delay?\n"
        "    - {name: temperature, lo: 0, hi: 100, max-delay: 2s}\n"
        "                                          ^^^^^^^^^",
    ),
    (
        "a text for a stream",
        "factory.yaml",
        "group:\n  name: g\n  streams: [temperature]\n",
        DefinitionError,
        "factory.yaml:3:13: a stream must be a mapping of keys to values, not the text 'temperature'\n"
        "  streams: [temperature]\n"
        "            ^^^^^^^^^^^",
    ),
    (
        "no retention and no query",
        "factory.yaml",
        "group:\n  name: g\n  streams:\n    - name: a\n",
        DefinitionError,
        "factory.yaml:2:3: group 'g' has no retention, and no query whose window tells it; add retention: …\n"
        "  name: g\n"
        "  ^^^^^^^",
    ),
    (
        "two streams of one name",
        "factory.yaml",
        but(("vibration,", "temperature,")),
        DefinitionError,
        "factory.yaml:7:14: group 'factory' uses the name 'temperature' twice; names of streams and attributes are unique\n"
        "    - {name: temperature, lo: 0, hi: 10, aggregate: latest}\n"
        "             ^^^^^^^^^^^",
    ),
    (
        "hi below lo",
        "factory.yaml",
        but(("hi: 100", "hi: -1")),
        DefinitionError,
        "factory.yaml:6:31: attribute 'temperature' has lo 0, which is not below hi -1\n"
        "    - {name: temperature, lo: 0, hi: -1, max_delay: 2s}\n"
        "                              ^",
    ),
    (
        "hi below the default lo",
        "factory.yaml",
        but(("lo: 0, hi: 100", "hi: -1")),
        DefinitionError,
        "factory.yaml:6:31: attribute 'temperature' has lo 0, which is not below hi -1\n"
        "    - {name: temperature, hi: -1, max_delay: 2s}\n"
        "                              ^^",
    ),
    (
        "NaN",
        "factory.yaml",
        but(("hi: 100", "hi: .nan")),
        DefinitionError,
        "factory.yaml:6:38: hi must be a number, not NaN\n"
        "    - {name: temperature, lo: 0, hi: .nan, max_delay: 2s}\n"
        "                                     ^^^^",
    ),
    (
        "an infinite missing",
        "factory.yaml",
        but(("hi: 100", "hi: 100, missing: .inf")),
        DefinitionError,
        "factory.yaml:6:52: missing must be a finite number, not the number inf\n"
        "    - {name: temperature, lo: 0, hi: 100, missing: .inf, max_delay: 2s}\n"
        "                                                   ^^^^",
    ),
    (
        "retention no multiple of the pane",
        "factory.yaml",
        but(("retention: 10m", "retention: 1500ms")),
        DefinitionError,
        "factory.yaml:3:14: retention 1s500ms is no multiple of the group's pane 1s\n"
        "  retention: 1500ms\n"
        "             ^^^^^^",
    ),
    (
        "an aggregate where nothing combines",
        "factory.yaml",
        "group:\n  name: g\n  retention: 1m\n  streams:\n    - name: s\n      identity: row\n      aggregate: max\n      attributes: [{name: a}]\n",
        DefinitionError,
        "factory.yaml:7:18: stream 's' has identity row: every record is an object of its own and nothing combines; remove aggregate\n"
        "      aggregate: max\n"
        "                 ^^^",
    ),
    (
        "bounds of an object stream",
        "factory.yaml",
        "group:\n  name: g\n  retention: 1m\n  streams:\n    - {name: s, lo: 0, attributes: [{name: a}]}\n",
        DefinitionError,
        "factory.yaml:5:21: stream 's' lists attributes, so lo belongs to each of them; move it there\n"
        "    - {name: s, lo: 0, attributes: [{name: a}]}\n"
        "                    ^",
    ),
    (
        "identity row beside another stream",
        "factory.yaml",
        "group:\n  name: g\n  retention: 1m\n  streams:\n    - {name: s, identity: row, attributes: [{name: a}]}\n    - name: t\n",
        NotServedError,
        "factory.yaml:5:5: group 'g': identity row needs a group with that one stream only\n"
        "    - {name: s, identity: row, attributes: [{name: a}]}\n"
        "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
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
