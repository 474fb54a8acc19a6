"""Rows that are made up keep the promises of their streams."""

import argparse
import itertools

import numpy as np
import numpy.typing as npt
import pytest

from services.produce.generate import Manner, add_manner_options, generated, read_manner
from skyband.files.definitions import load_definitions
from skyband.generate.values import Values

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


PAIR = load_definitions("""\
group:
  name: pair
  retention: 1m
  streams: [{name: a, lo: 0, hi: 1}, {name: b, lo: 0, hi: 1}]
""").group


class Columns:
    """Rows of two streams in columns: stream, time, object, value."""

    def __init__(self, manner: Manner, rows: int = 40_000, rows_per_second: float = 100.0, objects: int = 500) -> None:
        options = {"rows": rows, "objects": objects, "batch_rows": 1_000, "rows_per_second": rows_per_second}
        chunks = list(generated(PAIR, begin_us=0, seed=3, manner=manner, **options))  # type: ignore[arg-type]
        self.stream = np.concatenate([np.full(chunk.rows.rows, chunk.stream) for chunk in chunks])
        self.time = np.concatenate([chunk.rows.event_time_us for chunk in chunks])
        self.value = np.concatenate([chunk.rows.values[:, 0] for chunk in chunks])
        names: list[bytes] = []
        for chunk in chunks:
            starts = [0, *chunk.rows.id_ends.tolist()]
            names += [chunk.rows.id_bytes[a:b].tobytes() for a, b in itertools.pairwise(starts)]
        self.object = np.array([int(name[1:]) for name in names])

    def correlation(self) -> float:
        """Return the correlation of one value on each stream of the same object, many of each object."""
        firsts: list[npt.NDArray[np.float64]] = []
        seconds: list[npt.NDArray[np.float64]] = []
        for number in np.unique(self.object):
            a, b = (self.value[(self.object == number) & (self.stream == stream)] for stream in (0, 1))
            least = min(len(a), len(b))
            firsts.append(a[:least])
            seconds.append(b[:least])
        found = np.asarray(np.corrcoef(np.stack([np.concatenate(firsts), np.concatenate(seconds)])))
        return float(found[0, 1])


@pytest.mark.parametrize("values", [Values.UNIFORM, Values.ZIPF])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_values_of_an_object_correlate_between_streams(correlation: float, values: Values) -> None:
    manner = Manner(correlation=correlation, values=values)
    assert Columns(manner, objects=4_000).correlation() == pytest.approx(correlation, abs=0.06)


def test_skew_makes_few_objects_frequent() -> None:
    share = (Columns(Manner(skew=1.0)).object == 0).mean()
    assert share == pytest.approx(1 / sum(1 / n for n in range(1, 501)), rel=0.1)
    assert (Columns(Manner()).object == 0).mean() < 0.004


def test_zipf_values_are_mostly_small() -> None:
    value = Columns(Manner(values=Values.ZIPF)).value
    assert np.median(value) < 0.25 < 0.8 < value.max()


def test_bursts_bring_the_same_rows_in_less_time() -> None:
    found = Columns(Manner(bursts=10.0))
    in_burst = (found.time % 60_000_000 < 6_000_000).mean()
    assert in_burst / 0.1 / ((1 - in_burst) / 0.9) == pytest.approx(10.0, rel=0.1)
    assert found.time.max() / 1e6 == pytest.approx(400.0, rel=0.1)


def best_tenth(found: Columns, first_s: int, last_s: int) -> set[int]:
    """Return the tenth of all objects whose values on stream a are highest on average in a stretch of time."""
    taken = (found.stream == 0) & (found.time >= first_s * 1_000_000) & (found.time < last_s * 1_000_000)
    means = [(found.value[taken & (found.object == number)].mean(), number) for number in range(50)]
    return {number for _, number in sorted(means)[-5:]}


def test_drift_gives_other_objects_the_best_values() -> None:
    steady, drifting = (Columns(Manner(drift_us=drift), objects=50) for drift in (0, 100_000_000))
    assert len(best_tenth(steady, 0, 40) & best_tenth(steady, 340, 380)) >= 4
    # Little by little: neighbouring stretches share most of them.
    assert len(best_tenth(drifting, 0, 20) & best_tenth(drifting, 20, 40)) >= 2
    assert len(best_tenth(drifting, 0, 40) & best_tenth(drifting, 340, 380)) <= 2


def test_drift_does_not_depend_on_how_rows_are_cut() -> None:
    manner = Manner(drift_us=3_000_000, correlation=1.0)
    for batch_rows in (10, 1_000):
        made = generated(
            PAIR, begin_us=0, rows_per_second=100.0, rows=2_000, objects=1, batch_rows=batch_rows, manner=manner
        )
        found = np.concatenate([np.stack([c.rows.event_time_us, c.rows.values[:, 0]]) for c in made], axis=1)
        # One object, nothing by chance: a line from epoch to epoch, the same for any rows on it.
        ends = [found[1, (found[0] >= e * 3e6) & (found[0] < e * 3e6 + 1e5)].mean() for e in range(6)]
        middles = [found[1, abs(found[0] - (e + 0.5) * 3e6) < 1e5].mean() for e in range(5)]
        assert middles == pytest.approx([(a + b) / 2 for a, b in itertools.pairwise(ends)], abs=0.03)
        assert np.std(ends) > 0.05


def test_values_rise_and_fall_with_the_cycle() -> None:
    found = Columns(Manner(cycle_us=100_000_000))
    phase = found.time % 100_000_000 // 10_000_000
    means = [found.value[phase == part].mean() for part in range(10)]
    assert means[4] - means[0] == pytest.approx(0.5 * (0.9867 - 0.1867), abs=0.04)
    assert means == pytest.approx(means[::-1], abs=0.04)
    assert ((found.value >= 0) & (found.value <= 1)).all()


def read(*words: str) -> Manner:
    parser = argparse.ArgumentParser()
    add_manner_options(parser)
    found = parser.parse_args(words)
    manner = read_manner(found)
    assert vars(found) == {}
    return manner


def test_each_has_an_option() -> None:
    assert read() == Manner()
    words = "--skew 1.1 --values zipf --correlation 0.5 --bursts 10 --drift 1h --cycle 1d"
    assert read(*words.split()) == Manner(1.1, Values.ZIPF, 0.5, 10.0, 3_600_000_000, 86_400_000_000)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--correlation 1.5", "must be at least 0 and at most 1"),
        ("--bursts 0.5", "must be at least 1"),
        ("--bursts inf", "must be at least 1"),
        ("--skew nan", "must be at least 0"),
        ("--skew much", "invalid number value"),
        ("--drift 10ms", "must be at least 1s"),
        ("--cycle often", "is no duration"),
        ("--values normal", "invalid choice"),
    ],
)
def test_what_is_wrong_is_said(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read(*words.split())
    assert said in capsys.readouterr().err
