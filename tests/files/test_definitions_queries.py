"""Queries that a definitions file cannot have, and where the error points."""
# ruff: noqa: E501 - sentences as they are shown

from pathlib import Path

import pytest

from skyband.errors import DefinitionError, NotServedError
from tests.files.definition_texts import QUERY, WHOLE, but, error_shown

# Name, file, its text, kind of error, and the error as a user sees it: place, sentence, line, carets.
CASES = [
    (
        "unknown key of a query",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    windows: 3")),
        DefinitionError,
        "factory.yaml:11:5: query 'hottest' has no key 'windows'; did you mean window?\n    windows: 3\n    ^^^^^^^",
    ),
    (
        "unknown key like no other",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    colour: red")),
        DefinitionError,
        "factory.yaml:11:5: query 'hottest' has no key 'colour'; keys are name, kind, k, score, order, window, require, algorithm, max_error, target_precision, memory_budget, candidates\n"
        "    colour: red\n"
        "    ^^^^^^",
    ),
    (
        "a text for a number",
        "factory.yaml",
        but(("k: 10", "k: ten")),
        DefinitionError,
        "factory.yaml:10:8: k must be a whole number, not the text 'ten'\n    k: ten\n       ^^^",
    ),
    (
        "a number in quotes",
        "factory.yaml",
        but(("k: 10", "k: '10'")),
        DefinitionError,
        "factory.yaml:10:8: k must be a whole number, not the text '10'; write it as a plain number\n"
        "    k: '10'\n"
        "       ^^^^",
    ),
    (
        "a truth value for a number",
        "factory.yaml",
        but(("k: 10", "k: yes")),
        DefinitionError,
        "factory.yaml:10:8: k must be a whole number, not true\n    k: yes\n       ^^^",
    ),
    (
        "a key without value",
        "factory.yaml",
        but(("k: 10", "k:")),
        DefinitionError,
        "factory.yaml:10:5: k of query 'hottest' is empty; give it a value, or remove it\n    k:\n    ^",
    ),
    (
        "k of 0",
        "factory.yaml",
        but(("k: 10", "k: 0")),
        DefinitionError,
        "factory.yaml:10:8: k must be at least 1\n    k: 0\n       ^",
    ),
    (
        "k of 2^63",
        "factory.yaml",
        but(("k: 10", "k: 9223372036854775808")),
        DefinitionError,
        "factory.yaml:10:8: k must be at most 1,000,000\n    k: 9223372036854775808\n       ^^^^^^^^^^^^^^^^^^^",
    ),
    (
        "k of 1.5",
        "factory.yaml",
        but(("k: 10", "k: 1.5")),
        DefinitionError,
        "factory.yaml:10:8: k must be a whole number, not the number 1.5\n    k: 1.5\n       ^^^",
    ),
    (
        "a number with a leading zero",
        "factory.yaml",
        but(("k: 10", "k: 010")),
        DefinitionError,
        "factory.yaml:10:8: k must be a whole number, not the text '010'; write it as a plain number\n"
        "    k: 010\n"
        "       ^^^",
    ),
    (
        "a query without k",
        "factory.yaml",
        but(("    k: 10\n", "")),
        DefinitionError,
        "factory.yaml:9:5: query 'hottest' has no k; add k: …\n  - name: hottest\n    ^^^^^^^^^^^^^",
    ),
    (
        "two queries of one name",
        "factory.yaml",
        WHOLE + QUERY.split("\n", 1)[1],
        DefinitionError,
        "factory.yaml:13:11: two queries are named 'hottest'; give each a name of its own\n"
        "  - name: hottest\n"
        "          ^^^^^^^",
    ),
    (
        "a truth value for a name",
        "factory.yaml",
        but(("name: hottest", "name: on")),
        DefinitionError,
        "factory.yaml:9:11: name must be text, but bare yes, no, on, off, true, false are truth values in YAML; quote it\n"
        "  - name: on\n"
        "          ^^",
    ),
    (
        "a number for a name",
        "factory.yaml",
        but(("name: hottest", "name: 5")),
        DefinitionError,
        "factory.yaml:9:11: name must be text, not the number 5; quote it\n  - name: 5\n          ^",
    ),
    (
        "a name with a blank",
        "factory.yaml",
        but(("name: hottest", "name: hot test")),
        DefinitionError,
        "factory.yaml:9:11: query name 'hot test' must be 1 to 63 letters, digits, _ and -, beginning with a letter\n"
        "  - name: hot test\n"
        "          ^^^^^^^^",
    ),
    (
        "a misspelt choice",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    order: hihgest")),
        DefinitionError,
        "factory.yaml:11:12: order must be one of highest, lowest, not the text 'hihgest'; did you mean highest?\n"
        "    order: hihgest\n"
        "           ^^^^^^^",
    ),
    (
        "a kind that is not served",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    kind: dominating")),
        DefinitionError,
        "factory.yaml:11:11: queries of kind dominating are not served by this version; use rank\n"
        "    kind: dominating\n"
        "          ^^^^^^^^^^",
    ),
    (
        "require of an unknown stream",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    require: [temperature, speed]")),
        DefinitionError,
        "factory.yaml:11:28: require names 'speed', which is not a stream of group 'factory'; streams are temperature, vibration\n"
        "    require: [temperature, speed]\n"
        "                           ^^^^^",
    ),
    (
        "require of one stream without brackets",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    require: temperature")),
        DefinitionError,
        "factory.yaml:11:14: require must be any, all or a list of streams, not the text 'temperature'\n"
        "    require: temperature\n"
        "             ^^^^^^^^^^^",
    ),
    (
        "require of nothing",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    require: []")),
        DefinitionError,
        "factory.yaml:11:14: require lists no stream; list one, or write any\n    require: []\n             ^^",
    ),
    (
        "two-tier for an unsteady attribute",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    algorithm: two-tier")),
        NotServedError,
        "factory.yaml:11:16: query 'hottest' cannot use two-tier, because attribute 'vibration' is combined by latest: a good value can give way to a worse one; use algorithm view or auto\n"
        "    algorithm: two-tier\n"
        "               ^^^^^^^^",
    ),
    (
        "skyband for a group of streams",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    algorithm: skyband")),
        NotServedError,
        "factory.yaml:11:16: query 'hottest' cannot use skyband, which needs each object at most once in a window, all attributes in one record; group 'factory' is no single object stream; use algorithm view or auto\n"
        "    algorithm: skyband\n"
        "               ^^^^^^^",
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
