"""Texts of definitions files, and the error that one brings as a user sees it."""
# ruff: noqa: E501 - sentences as they are shown

from pathlib import Path

import pytest

from skyband.errors import DefinitionError
from skyband.files.definitions import load_definitions

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


def but(*pairs: tuple[str, str]) -> str:
    """Return WHOLE with each first text replaced by the second."""
    text = WHOLE
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def error_shown(file: str, text: str) -> tuple[type[DefinitionError], str]:
    """Return the kind of error that a file of this text brings, and what is shown: place, sentence, line, carets."""
    Path(file).write_bytes(text.encode())
    with pytest.raises(DefinitionError) as caught:
        load_definitions(file)
    return type(caught.value), f"{caught.value}\n{caught.value.pointer()}"
