"""Scores that a query cannot have, and that the error points into the score however it is written."""
# ruff: noqa: E501 - sentences as they are shown

from pathlib import Path

import pytest

from skyband.errors import DefinitionError, NotServedError
from skyband.files.definitions import load_definitions
from tests.files.definition_texts import GROUP, but, error_shown

# Name, file, its text, kind of error, and the error as a user sees it: place, sentence, line, carets.
CASES = [
    (
        "score names an unknown stream",
        "factory.yaml",
        but(("3*vibration", "speed")),
        DefinitionError,
        "factory.yaml:11:30: score uses 'speed', which is not a stream of group 'factory'; streams are temperature, vibration\n"
        "    score: 0.7*temperature + speed\n"
        "                             ^^^^^",
    ),
    (
        "the same in single quotes",
        "factory.yaml",
        but(("0.7*temperature + 3*vibration", "'0.7*temperature + speed'")),
        DefinitionError,
        "factory.yaml:11:31: score uses 'speed', which is not a stream of group 'factory'; streams are temperature, vibration\n"
        "    score: '0.7*temperature + speed'\n"
        "                              ^^^^^",
    ),
    (
        "the same in double quotes with escapes",
        "factory.yaml",
        but(("0.7*temperature + 3*vibration", '"0.7*temperature\\t+ \\x73peed"')),
        DefinitionError,
        "factory.yaml:11:32: score uses 'speed', which is not a stream of group 'factory'; streams are temperature, vibration\n"
        '    score: "0.7*temperature\\t+ \\x73peed"\n'
        "                               ^^^^^^^^",
    ),
    (
        "the same in a folded block",
        "factory.yaml",
        but(("0.7*temperature + 3*vibration", ">-\n      0.7*temperature\n      + speed")),
        DefinitionError,
        "factory.yaml:13:9: score uses 'speed', which is not a stream of group 'factory'; streams are temperature, vibration\n"
        "      + speed\n"
        "        ^^^^^",
    ),
    (
        "the same on two lines",
        "factory.yaml",
        but(("0.7*temperature + 3*vibration", "0.7*temperature\n        + speed")),
        DefinitionError,
        "factory.yaml:12:11: score uses 'speed', which is not a stream of group 'factory'; streams are temperature, vibration\n"
        "        + speed\n"
        "          ^^^^^",
    ),
    (
        "a score with a comma in braces",
        "factory.yaml",
        GROUP + "queries:\n  - {name: a, k: 1, score: max(temperature, vibration), window: {size: 1s}}\n",
        DefinitionError,
        "factory.yaml:9:45: query 'a' has no key 'vibration)'; a text with a comma or a colon inside {…} needs quotes\n"
        "  - {name: a, k: 1, score: max(temperature, vibration), window: {size: 1s}}\n"
        "                                            ^^^^^^^^^^",
    ),
    (
        "a score that ends too early",
        "factory.yaml",
        but((" 3*vibration", "")),
        DefinitionError,
        "factory.yaml:11:29: score ends where a value is expected\n"
        "    score: 0.7*temperature +\n"
        "                            ^",
    ),
    (
        "a score that is a number",
        "factory.yaml",
        but(("0.7*temperature + 3*vibration", "5")),
        DefinitionError,
        "factory.yaml:11:12: score must be text, not the number 5; quote it\n    score: 5\n           ^",
    ),
    (
        "a score that names no stream",
        "factory.yaml",
        but(("0.7*temperature + 3*vibration", "'5'")),
        DefinitionError,
        "factory.yaml:11:12: score names no stream, so all objects would be equal; name at least one of temperature, vibration\n"
        "    score: '5'\n"
        "           ^^^",
    ),
    (
        "an attribute without a worst value",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    order: lowest"), (", hi: 100", "")),
        NotServedError,
        "factory.yaml:12:12: attribute 'temperature' needs hi for score '0.7*temperature + 3*vibration': unseen, it counts as its worst value; declare hi on the stream, or set missing to a number\n"
        "    score: 0.7*temperature + 3*vibration\n"
        "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    ),
    (
        "an attribute without a direction",
        "factory.yaml",
        but(("0.7*temperature + 3*vibration", "abs(temperature - 50)")),
        NotServedError,
        "factory.yaml:11:12: attribute 'temperature' combines by best, but score 'abs(temperature - 50)' neither only rises nor only falls with it, so no value is its best; give the stream another aggregate, or narrow lo and hi\n"
        "    score: abs(temperature - 50)\n"
        "           ^^^^^^^^^^^^^^^^^^^^^",
    ),
    (
        "a score in JSON with an escape",
        "factory.json",
        '{"group": {"name": "g", "streams": [{"name": "a"}]},\n "queries": [{"name": "q", "k": 1, "score": "a + \\u0062b", "window": {"size": "1s"}}]}',
        DefinitionError,
        "factory.json:2:50: score uses 'bb', which is not a stream of group 'g'; streams are a\n"
        ' "queries": [{"name": "q", "k": 1, "score": "a + \\u0062b", "window": {"size": "1s"}}]}\n'
        "                                                 ^^^^^^^",
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


SCORE = "0.7*temperature + max(3*vibration, 1) + nothing"


@pytest.mark.parametrize(
    "written",
    [
        f"score: {SCORE}",
        f"score:   '{SCORE}'",
        f'score: "{SCORE}"',
        f'"score": "{SCORE}"  # why'.replace("max", "\\x6dax"),
        "score: |\n      " + SCORE.replace(" + ", "\n      + "),
        "score: >-\n      " + SCORE.replace(" + ", "\n      + "),
        "score: " + SCORE.replace(" + ", "\n\n        + "),
        "score: '" + SCORE.replace(" + ", "\n        + ") + "'",
        'score: "' + SCORE.replace(" + ", "\\\n        + ") + '"',
        'score: "' + SCORE.replace(" + ", "\\n\\t+ ") + '"',
    ],
)
def test_a_name_in_a_score_is_found_however_the_score_is_written(written: str) -> None:
    text = but(("score: 0.7*temperature + 3*vibration", written))
    with pytest.raises(DefinitionError, match="score uses 'nothing'") as caught:
        load_definitions(text)
    error = caught.value
    assert error.source_text is not None
    assert error.column is not None
    assert error.source_text[error.column : error.column + error.length] == "nothing"
    assert error.place is not None
    _, line, column = error.place.split(":")
    assert text.split("\n")[int(line) - 1].index("nothing") + 1 == int(column)
