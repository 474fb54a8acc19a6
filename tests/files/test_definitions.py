"""Definitions files: what loads, what does not, and where the error points."""
# ruff: noqa: E501 - sentences as they are shown

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyband.errors import DefinitionError, NotServedError
from skyband.files.definitions import dump_definitions, load_definitions
from skyband.model.definitions import Definitions
from skyband.model.duration import MAX_TIME_US
from skyband.model.group import Group
from skyband.model.query import Algorithm, Kind, Order, Query, Window
from skyband.model.stream import (
    Aggregate,
    Attribute,
    Fields,
    Format,
    Identity,
    IdleThen,
    Late,
    OutOfRange,
    Stream,
    TimeUnit,
)

SECOND = 1_000_000

GROUP = """\
group:
  name: factory
  retention: 10m
  pane: 1s
  streams:
    - {name: temperature, lo: 0, hi: 100, max_delay: 2s}
    - {name: vibration, lo: 0, hi: 10, aggregate: latest}
"""
QUERY = """\
queries:
  - name: hottest
    k: 10
    score: 0.7*temperature + 3*vibration
    window: {size: 60s, slide: 10s}
"""
WHOLE = GROUP + QUERY

# The example of the architecture, as it stands there.
EXAMPLE = (
    GROUP
    + """\
queries:
  - {name: hottest, kind: rank, k: 10, score: 0.7*temperature + 3*vibration, order: highest, window: {size: 60s, slide: 10s}, require: any, algorithm: auto}
"""
)


def but(*pairs: tuple[str, str]) -> str:
    """Return WHOLE with each first text replaced by the second."""
    text = WHOLE
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


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
        "unknown key of a query",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    windows: 3")),
        DefinitionError,
        "factory.yaml:11:5: query 'hottest' has no key 'windows'; did you mean window?\n    windows: 3\n    ^^^^^^^",
    ),
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
        "unknown key like no other",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    colour: red")),
        DefinitionError,
        "factory.yaml:11:5: query 'hottest' has no key 'colour'; keys are name, kind, k, score, order, window, require, algorithm\n"
        "    colour: red\n"
        "    ^^^^^^",
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
        "a text for a stream",
        "factory.yaml",
        "group:\n  name: g\n  streams: [temperature]\n",
        DefinitionError,
        "factory.yaml:3:13: a stream must be a mapping of keys to values, not the text 'temperature'\n"
        "  streams: [temperature]\n"
        "            ^^^^^^^^^^^",
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
        "no group",
        "factory.yaml",
        QUERY,
        DefinitionError,
        "factory.yaml:1:1: the document has no group; add group: …\nqueries:\n^^^^^^^^",
    ),
    (
        "a window without size",
        "factory.yaml",
        but(("size: 60s, ", "")),
        DefinitionError,
        "factory.yaml:12:13: window has no size; add size: …\n    window: {slide: 10s}\n            ^^^^^^^^^^^^",
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
        "a key given twice",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    k: 11")),
        DefinitionError,
        "factory.yaml:11:5: key 'k' is given twice, first in line 10; keep one\n    k: 11\n    ^",
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
        "two streams of one name",
        "factory.yaml",
        but(("vibration,", "temperature,")),
        DefinitionError,
        "factory.yaml:7:14: group 'factory' uses the name 'temperature' twice; names of streams and attributes are unique\n"
        "    - {name: temperature, lo: 0, hi: 10, aggregate: latest}\n"
        "             ^^^^^^^^^^^",
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
        "retention no multiple of the pane",
        "factory.yaml",
        but(("retention: 10m", "retention: 1500ms")),
        DefinitionError,
        "factory.yaml:3:14: retention 1s500ms is no multiple of the group's pane 1s\n"
        "  retention: 1500ms\n"
        "             ^^^^^^",
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
        "a truth value for a key",
        "factory.yaml",
        but(("    k: 10", "    k: 10\n    on: 3")),
        DefinitionError,
        "factory.yaml:11:5: query 'hottest' has a key that is no text, true; quote it\n    on: 3\n    ^^",
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
        "a score in JSON with an escape",
        "factory.json",
        '{"group": {"name": "g", "streams": [{"name": "a"}]},\n "queries": [{"name": "q", "k": 1, "score": "a + \\u0062b", "window": {"size": "1s"}}]}',
        DefinitionError,
        "factory.json:2:50: score uses 'bb', which is not a stream of group 'g'; streams are a\n"
        ' "queries": [{"name": "q", "k": 1, "score": "a + \\u0062b", "window": {"size": "1s"}}]}\n'
        "                                                 ^^^^^^^",
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
    Path(file).write_bytes(text.encode())
    with pytest.raises(DefinitionError) as caught:
        load_definitions(file)
    assert f"{caught.value}\n{caught.value.pointer()}" == shown
    assert type(caught.value) is kind


def test_the_example_of_the_architecture_loads() -> None:
    assert load_definitions(EXAMPLE) == Definitions(
        Group(
            name="factory",
            retention_us=600 * SECOND,
            pane_us=SECOND,
            streams=(
                Stream(
                    name="temperature", attributes=(Attribute(name="temperature", hi=100.0),), max_delay_us=2 * SECOND
                ),
                Stream(
                    name="vibration", attributes=(Attribute(name="vibration", hi=10.0),), aggregate=Aggregate.LATEST
                ),
            ),
        ),
        (
            Query(
                name="hottest",
                k=10,
                score="0.7*temperature + 3*vibration",
                window=Window(60 * SECOND, 10 * SECOND),
                order=Order.HIGHEST,
                kind=Kind.RANK,
                algorithm=Algorithm.AUTO,
            ),
        ),
    )


EVERYTHING = """\
group:
  name: everything
  retention: 1h
  retention_rows: 5000
  pane: 500ms
  shards: 1
  max_drift: 2m
  streams:
    - name: moves
      attributes:
        - {name: x, lo: -inf, hi: 1e3, out_of_range: clamp, missing: -1.5}
        - {name: y, lo: -.inf, hi: 1_000}
      identity: object
      aggregate: first
      repeat_after: never
      max_delay: 1.5s
      late: drop
      idle: {after: 1m, then: hold}
      max_ahead: 0
      topic: the.moves
      format: confluent-avro
      schema: Move
      fields: {object_id: id, event_time: at, time_unit: iso}
    - name: speed
      missing: 7
      repeat_after: 3h
      fields: {value: v}
queries:
  - name: newest
    k: 1e2
    order: lowest
    score: 'x + speed'
    window: {count: 500, slide: 5}
    require: [speed, moves]
    algorithm: view
"""


def test_every_key_is_read() -> None:
    definitions = load_definitions(EVERYTHING)
    moves = Stream(
        name="moves",
        attributes=(
            Attribute(name="x", lo=float("-inf"), hi=1000.0, out_of_range=OutOfRange.CLAMP, missing=-1.5),
            Attribute(name="y", lo=float("-inf"), hi=1000.0),
        ),
        is_object_stream=True,
        identity=Identity.OBJECT,
        aggregate=Aggregate.FIRST,
        repeat_after_us=MAX_TIME_US,
        max_delay_us=1_500_000,
        late=Late.DROP,
        idle_after_us=60 * SECOND,
        idle_then=IdleThen.HOLD,
        max_ahead_us=0,
        topic="the.moves",
        format=Format.CONFLUENT_AVRO,
        schema="Move",
        fields=Fields(object_id="id", event_time="at", time_unit=TimeUnit.ISO),
    )
    speed = Stream(
        name="speed",
        attributes=(Attribute(name="speed", missing=7.0),),
        repeat_after_us=3 * 3600 * SECOND,
        fields=Fields(value="v"),
    )
    assert definitions == Definitions(
        Group(
            name="everything",
            streams=(moves, speed),
            retention_us=3600 * SECOND,
            pane_us=500_000,
            retention_rows=5000,
            shards=1,
            max_drift_us=120 * SECOND,
        ),
        (
            Query(
                name="newest",
                k=100,
                order=Order.LOWEST,
                score="x + speed",
                window=Window(500, 5, in_rows=True),
                require=("speed", "moves"),
                algorithm=Algorithm.VIEW,
            ),
        ),
    )


@pytest.mark.parametrize("text", [EXAMPLE, WHOLE, EVERYTHING], ids=["example", "whole", "everything"])
def test_what_is_dumped_loads_as_the_same_also_through_json(tmp_path: Path, text: str) -> None:
    definitions = load_definitions(text)
    document = dump_definitions(definitions)
    assert load_definitions(document) == definitions
    file = tmp_path / "d.json"
    file.write_text(json.dumps(document, allow_nan=False), encoding="utf-8")
    assert load_definitions(file) == definitions
    # YAML reads JSON.
    assert load_definitions(json.dumps(document, indent=1)) == definitions


def test_a_dump_leaves_defaults_away() -> None:
    assert dump_definitions(load_definitions(EXAMPLE)) == {
        "group": {
            "name": "factory",
            "retention": "10m",
            "streams": [
                {"name": "temperature", "hi": 100.0, "max_delay": "2s"},
                {"name": "vibration", "hi": 10.0, "aggregate": "latest"},
            ],
        },
        "queries": [
            {
                "name": "hottest",
                "k": 10,
                "score": "0.7*temperature + 3*vibration",
                "window": {"size": "1m", "slide": "10s"},
            }
        ],
    }


ATTRIBUTES = st.builds(
    lambda lo, span, clamp, missing: {
        "lo": lo,
        "hi": lo + span,
        "out_of_range": OutOfRange.CLAMP if clamp else OutOfRange.REJECT,
        "missing": missing,
    },
    st.floats(-1e6, 1e6),
    st.floats(1, 1e6),
    st.booleans(),
    st.none() | st.floats(-1e6, 1e6),
)
DURATIONS = st.integers(0, 10**12)


@st.composite
def groups(draw: st.DrawFn) -> Group:
    streams = []
    for index in range(draw(st.integers(1, 3))):
        name = f"s{index}"
        is_object_stream = draw(st.booleans())
        attributes = [f"{name}_{i}" for i in range(draw(st.integers(1, 3)))] if is_object_stream else [name]
        streams.append(
            Stream(
                name=name,
                attributes=tuple(Attribute(name=attribute, **draw(ATTRIBUTES)) for attribute in attributes),
                is_object_stream=is_object_stream,
                aggregate=draw(st.sampled_from(Aggregate)),
                repeat_after_us=draw(st.none() | st.just(MAX_TIME_US) | st.integers(1, 10**12)),
                max_delay_us=draw(DURATIONS),
                late=draw(st.sampled_from(Late)),
                idle_after_us=draw(DURATIONS),
                idle_then=draw(st.sampled_from(IdleThen)),
                max_ahead_us=draw(DURATIONS),
                topic=draw(st.text(max_size=5)),
                format=draw(st.sampled_from(Format)),
                fields=Fields(time_unit=draw(st.sampled_from(TimeUnit))),
            )
        )
    pane = draw(st.integers(1, 10**7))
    return Group(
        name="g",
        streams=tuple(streams),
        retention_us=pane * draw(st.integers(1, 1000)),
        pane_us=pane,
        retention_rows=draw(st.integers(0, 1000)),
        shards=draw(st.integers(1, 9)),
        max_drift_us=draw(DURATIONS),
    )


@given(groups())
@settings(max_examples=80, deadline=None)
def test_any_group_is_dumped_and_loaded_as_it_was(group: Group) -> None:
    definitions = Definitions(group, ())
    document = json.loads(json.dumps(dump_definitions(definitions), allow_nan=False))
    assert load_definitions(document) == definitions


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


def test_without_retention_a_group_keeps_its_longest_windows() -> None:
    text = GROUP.replace("  retention: 10m\n", "").replace("pane: 1s", "pane: 2s") + (
        "queries:\n"
        "  - {name: a, k: 1, score: temperature, window: {size: 6s}}\n"
        "  - {name: b, k: 1, score: temperature, window: {size: 8s, slide: 2s}}\n"
        "  - {name: c, k: 1, score: temperature, window: {count: 70, slide: 1}}\n"
    )
    group = load_definitions(text).group
    assert (group.pane_us, group.retention_us, group.retention_rows) == (2 * SECOND, 8 * SECOND, 70)


def test_without_slide_windows_follow_one_another() -> None:
    query = load_definitions(but((", slide: 10s", ""))).queries[0]
    assert query.window == Window(60 * SECOND, 60 * SECOND)


def test_an_object_stream_combines_by_latest_and_an_attribute_stream_by_best() -> None:
    text = "group:\n  name: g\n  retention: 1m\n  streams:\n    - name: a\n    - {name: b, attributes: [{name: x}]}\n"
    streams = load_definitions(text).group.streams
    assert [stream.aggregate for stream in streams] == [Aggregate.BEST, Aggregate.LATEST]


def test_of_errors_in_a_mapping_the_first_is_raised_with_its_path() -> None:
    document = dump_definitions(load_definitions(WHOLE))
    document["queries"][0]["window"]["slide"] = "7ms"
    document["group"]["streams"][1]["hi"] = -1
    with pytest.raises(DefinitionError, match="not below hi") as caught:
        load_definitions(document)
    assert caught.value.field == "group.streams[1].hi"
    assert caught.value.place is None
    del document["group"]["streams"][1]["hi"]
    with pytest.raises(DefinitionError, match="no multiple") as caught:
        load_definitions(document)
    assert caught.value.field == "queries[0].window.slide"


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


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "f.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + WHOLE.encode())
    assert load_definitions(file) == load_definitions(WHOLE)


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
