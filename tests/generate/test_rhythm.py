import numpy as np
import pytest

from skyband.generate.arrivals import event_times
from skyband.generate.rhythm import Bursts, ramp_times

S = 1_000_000


@pytest.mark.parametrize(("factor", "share"), [(1.0, 0.3), (4.0, 0.1), (20.0, 0.5)])
def test_rows_of_a_burst_come_at_a_multiple_of_the_rate_of_the_rest(factor: float, share: float) -> None:
    times = event_times(np.random.default_rng(1), 100_000, 1_000.0, bursts=Bursts(factor, share, period_us=S))
    assert (np.diff(times) >= 0).all()
    in_burst = (times % S < share * S).mean()
    assert in_burst / share / ((1 - in_burst) / (1 - share)) == pytest.approx(factor, rel=0.05)
    # The mean rate is as asked.
    assert times[-1] / S == pytest.approx(100.0, rel=0.05)


def test_bursts_go_on_where_the_time_before_ended() -> None:
    bursts = Bursts(9.0, 0.2, period_us=10 * S)
    steady = np.linspace(0.0, 95.0 * S, 20)
    whole = bursts.times(0, steady)
    for cut in (1, 7, 19):
        start = int(whole[cut])
        again = bursts.times(start, steady[cut:] - steady[cut])
        assert abs(again - whole[cut:]).max() <= 100
        assert again[0] == start


def test_bursts_begin_with_each_period_before_the_epoch_too() -> None:
    bursts = Bursts(9.0, 0.2, period_us=10 * S)
    steady = np.linspace(0.0, 40.0 * S, 4_000)
    assert (bursts.times(-30 * S, steady) == bursts.times(0, steady) - 30 * S).all()


@pytest.mark.parametrize("factor", [0.2, 0.9999, 1.0, 3.0])
def test_a_rate_moves_evenly_to_its_end(factor: float) -> None:
    times = event_times(np.random.default_rng(2), 50_000, 1_000.0, 7 * S, rate_factor=factor) - 7 * S
    assert (np.diff(times) >= 0).all()
    length = times[-1]
    tenths = np.histogram(times, bins=10, range=(0, length))[0] / (length / 10 / S)
    expected = 1_000.0 * (1.0 + (factor - 1.0) * (np.arange(10) + 0.5) / 10)
    assert tenths == pytest.approx(expected, rel=0.1)


def test_no_rows_have_no_times() -> None:
    assert len(ramp_times(5, np.zeros(0), 2.0)) == 0
    assert len(Bursts(2.0).times(5, np.zeros(0))) == 0


def test_what_cannot_be_is_refused() -> None:
    for factor, share, period_us in ((0.5, 0.1, S), (float("inf"), 0.1, S), (2.0, 1.0, S), (2.0, 0.1, 0)):
        with pytest.raises(ValueError, match="factor must"):
            Bursts(factor, share, period_us)
    with pytest.raises(ValueError, match="above 0"):
        ramp_times(0, np.ones(1), 0.0)
    with pytest.raises(ValueError, match="not for both"):
        event_times(np.random.default_rng(1), 1, 1.0, bursts=Bursts(2.0), rate_factor=2.0)
