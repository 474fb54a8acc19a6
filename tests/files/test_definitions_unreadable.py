"""Definitions files that are no YAML, no JSON, or no document, and where the error points."""
# ruff: noqa: E501 - sentences as they are shown

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.errors import DefinitionError
from skyband.files.definitions import load_definitions
from tests.files.definition_texts import EVERYTHING, QUERY, WHOLE, but, error_shown

# Name, file, its text, kind of error, and the error as a user sees it: place, sentence, line, carets.
CASES = [
    (
        "unknown key at the top",
        "factory.yaml",
        WHOLE + "querys: []\n",
        DefinitionError,
        "factory.yaml:13:1: the document has no key 'querys'; did you mean queries?\nquerys: []\n^^^^^^",
    ),
    (
        "a list",
        "factory.yaml",
        "- a\n- b\n",
        DefinitionError,
        "factory.yaml:1:1: the document must be a mapping of keys to values, not a list\n- a\n^^^",
    ),
    (
        "a text for a mapping",
        "factory.yaml",
        "group: factory\n",
        DefinitionError,
        "factory.yaml:1:8: group must be a mapping of keys to values, not the text 'factory'\n"
        "group: factory\n"
        "       ^^^^^^^",
    ),
    (
        "a mapping for a list",
        "factory.yaml",
        "group:\n  name: g\n  streams: {temperature: {lo: 0}}\n",
        DefinitionError,
        "factory.yaml:3:12: streams must be a list, not a mapping\n"
        "  streams: {temperature: {lo: 0}}\n"
        "           ^^^^^^^^^^^^^^^^^^^^^^",
    ),
    (
        "no group",
        "factory.yaml",
        QUERY,
        DefinitionError,
        "factory.yaml:1:1: the document has no group; add group: …\nqueries:\n^^^^^^^^",
    ),
    (
        "a key given twice",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    k: 11")),
        DefinitionError,
        "factory.yaml:11:5: key 'k' is given twice, first in line 10; keep one\n    k: 11\n    ^",
    ),
    (
        "a brace never closed",
        "factory.yaml",
        but(("slide: 10s}", "slide: 10s")),
        DefinitionError,
        "factory.yaml:12:13: not readable as YAML while parsing a flow mapping: expected ',' or '}', but got the end of the file\n"
        "    window: {size: 60s, slide: 10s\n"
        "            ^",
    ),
    (
        "a colon in a text",
        "factory.yaml",
        but(("name: hottest", "name: hottest: x")),
        DefinitionError,
        "factory.yaml:9:18: not readable as YAML: mapping values are not allowed here; check the indentation, and quote a text that holds ': '\n"
        "  - name: hottest: x\n"
        "                 ^",
    ),
    (
        "a tab",
        "factory.yaml",
        but(("    k: 10", "\tk: 10")),
        DefinitionError,
        "factory.yaml:10:1: not readable as YAML while scanning for the next token: a tab in the indentation; use blanks\n"
        " k: 10\n"
        "^",
    ),
    (
        "wrong indentation",
        "factory.yaml",
        but(("    k: 10", "   k: 10")),
        DefinitionError,
        "factory.yaml:10:4: not readable as YAML while parsing a block collection: expected the end of the block, but found a mapping; check the indentation, and quote a text that holds ': '\n"
        "   k: 10\n"
        "   ^",
    ),
    (
        "two documents",
        "factory.yaml",
        WHOLE + "---\n" + WHOLE,
        DefinitionError,
        "factory.yaml:13:1: not readable as YAML: a second document; keep one group with its queries in a file\n---\n^",
    ),
    (
        "an empty file",
        "factory.yaml",
        "",
        DefinitionError,
        "factory.yaml:1:1: is empty; write a group and its queries (group: …, queries: …)\n\n^",
    ),
    (
        "nothing but a comment",
        "factory.yaml",
        "# nothing here\n",
        DefinitionError,
        "factory.yaml:1:1: is empty; write a group and its queries (group: …, queries: …)\n# nothing here\n^",
    ),
    (
        "a control character",
        "factory.yaml",
        but(("hottest", "hot\x01test")),
        DefinitionError,
        "factory.yaml:9:14: holds the control character U+0001; remove it\n  - name: hot\x01test\n             ^",
    ),
    (
        "an alias",
        "factory.yaml",
        but(
            ("{size: 60s, slide: 10s}", "&w {size: 60s}"),
        )
        + "  - {name: b, k: 1, score: temperature, window: *w}\n",
        DefinitionError,
        "factory.yaml:13:49: not readable as YAML: alias *w; write the value out\n"
        "  - {name: b, k: 1, score: temperature, window: *w}\n"
        "                                                ^",
    ),
    (
        "a tag",
        "factory.yaml",
        but(("hottest", "!!python/object:os.system hottest")),
        DefinitionError,
        "factory.yaml:9:11: tag !!python/object:os.system is not read here; remove it\n"
        "  - name: !!python/object:os.system hottest\n"
        "          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    ),
    (
        "a truth value for a key",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    on: 3")),
        DefinitionError,
        "factory.yaml:11:5: query 'hottest' has a key that is no text, true; quote it\n    on: 3\n    ^^",
    ),
    (
        "several errors",
        "factory.yaml",
        but(("hi: 100", "hi: -100"), ("k: 10", "k: 0"), ("pane: 1s", "pane: 0")),
        DefinitionError,
        "factory.yaml:4:9: pane must be above 0\n  pane: 0\n        ^",
    ),
    (
        "JSON syntax",
        "factory.json",
        '{"group": {"name": "g",}}',
        DefinitionError,
        "factory.json:1:24: not readable as JSON: Expecting property name enclosed in double quotes\n"
        '{"group": {"name": "g",}}\n'
        "                       ^",
    ),
    (
        "JSON indented with tabs",
        "factory.json",
        '{\n\t"group": {\n\t\t"name": "g",\n\t\t"streams": [{"name": "a", "hi": -1e0}]\n\t}\n}\n',
        DefinitionError,
        "factory.json:4:35: attribute 'a' has lo 0, which is not below hi -1\n"
        '  "streams": [{"name": "a", "hi": -1e0}]\n'
        "                                  ^^^^",
    ),
    (
        "lines that end as on Windows",
        "factory.yaml",
        but(("k: 10", "k: 0")).replace("\n", "\r\n"),
        DefinitionError,
        "factory.yaml:10:8: k must be at least 1\n    k: 0\n       ^",
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


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError) as caught:
        load_definitions(tmp_path / "no.yaml")
    assert (
        str(caught.value)
        == f"{tmp_path / 'no.yaml'}: there is no such file; name a file of definitions, .yaml or .json"
    )


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="cannot be read: is a directory"):
        load_definitions(tmp_path)


def test_a_file_that_is_not_utf8_is_refused_at_the_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.yaml").write_bytes("group:\n  name: früh\n".encode("latin-1"))
    with pytest.raises(DefinitionError) as caught:
        load_definitions("f.yaml")
    assert str(caught.value) == "f.yaml:2:11: is not UTF-8: byte 0xfc begins no character; save it as UTF-8"


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_a_bottomless_file_is_refused(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"f.{suffix}"
    file.write_text("[" * 2_000 + "]" * 2_000)
    with pytest.raises(DefinitionError, match="nested too deeply"):
        load_definitions(file)


@given(st.data())
@settings(max_examples=80, deadline=None)
def test_no_damage_to_a_file_brings_another_error(data: st.DataObject) -> None:
    text = EVERYTHING if data.draw(st.booleans()) else WHOLE
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 6)))
    damage = data.draw(st.text(st.sampled_from(" \n:-{}[],'\"|>&*!#%@?0a.é\t"), max_size=3))
    damaged = text[:start] + damage + text[stop:] + "\n"
    error = error_of(damaged)
    assert error is None or (error.place is not None and error.pointer() is not None)


def error_of(text: str) -> DefinitionError | None:
    try:
        load_definitions(text)
    except DefinitionError as error:
        return error
    return None
