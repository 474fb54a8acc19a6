"""Rows that are made up keep the promises of their streams."""

import itertools

import numpy as np

from services.produce.generate import generated
from skyband.files.definitions import load_definitions

S = 1_000_000
GROUP = load_definitions("""\
group:
  name: factory
  retention: 1m
  streams:
    - {name: heat, lo: -20, hi: 30, max_delay: 2s}
    - {name: shake}
    - {name: trades, attributes: [{name: price, lo: 1, hi: 2}, {name: volume}]}
""").group


def made(**options: object) -> list[tuple[int, object]]:
    found = generated(GROUP, begin_us=5 * S, rows_per_second=100.0, **options)  # type: ignore[arg-type]
    return [(chunk.stream, chunk.rows) for chunk in found]


def test_there_are_as_many_rows_as_asked_evenly_over_streams() -> None:
    counts = [0, 0, 0]
    for stream, rows in made(rows=3_000, batch_rows=700):
        counts[stream] += rows.rows  # type: ignore[attr-defined]
    assert sum(counts) == 3_000
    assert min(counts) > 900


def test_values_lie_within_their_bounds() -> None:
    for stream, rows in made(rows=2_000):
        bounds = [[(-20.0, 30.0)], [(0.0, 100.0)], [(1.0, 2.0), (0.0, 100.0)]][stream]
        for column, (lo, hi) in enumerate(bounds):
            values = rows.values[:, column]  # type: ignore[attr-defined]
            assert (values >= lo).all()
            assert (values <= hi).all()
            assert values.std() > 0


def test_rows_are_out_of_order_by_their_max_delay_at_most() -> None:
    disorder = {0: 0, 1: 0, 2: 0}
    newest = {0: 0, 1: 0, 2: 0}
    for stream, rows in made(rows=5_000, batch_rows=5_000):
        for time_us in rows.event_time_us.tolist():  # type: ignore[attr-defined]
            newest[stream] = max(newest[stream], time_us)
            disorder[stream] = max(disorder[stream], newest[stream] - time_us)
    assert 0 < disorder[0] <= 2 * S
    assert disorder[1] == disorder[2] == 0


def test_time_goes_on_from_batch_to_batch_at_the_rate() -> None:
    times = np.concatenate([rows.event_time_us for _, rows in made(rows=20_000, batch_rows=100)])  # type: ignore[attr-defined]
    assert times.min() >= 5 * S
    assert 180 * S < times.max() - 5 * S < 220 * S


def test_the_same_seed_gives_the_same_rows() -> None:
    one, two, other = (made(rows=50, seed=seed) for seed in (7, 7, 8))
    same = [a.values.tolist() == b.values.tolist() for (_, a), (_, b) in zip(one, two, strict=True)]  # type: ignore[attr-defined]
    assert all(same)
    assert [rows.values.tolist() for _, rows in one] != [rows.values.tolist() for _, rows in other]  # type: ignore[attr-defined]


def test_without_a_number_it_goes_on() -> None:
    endless = generated(GROUP, begin_us=0, rows_per_second=100.0, batch_rows=10)
    assert len(list(itertools.islice(endless, 100))) == 100
