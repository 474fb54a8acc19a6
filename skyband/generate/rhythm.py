"""When rows come faster than at other times: in bursts, or more and more.

Words: *steady time* passes at the same rate of rows always; a rhythm says when so much of it is over. Arrivals that are
independent in steady time are independent in time too, only denser where steady time passes faster.

::

    time      |------ period ------|------ period ------|
    rate      ########____________ ########____________      share 0.4, factor 4: four times as many a second
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Bursts", "ramp_times"]


@dataclass(frozen=True, slots=True)
class Bursts:
    """Each period begins with a burst: for a `share` of it rows come at `factor` times the rate of the rest of it.

    The mean rate is that without bursts. Periods begin at multiples of `period_us`.
    """

    factor: float
    share: float = 0.1
    period_us: int = 60_000_000

    def __post_init__(self) -> None:
        if not (1.0 <= self.factor < float("inf") and 0.0 < self.share < 1.0 and self.period_us >= 1):
            raise ValueError("factor must be at least 1, share between 0 and 1, period_us at least 1")

    @property
    def calm(self) -> float:
        """Rate between bursts, as a share of the mean rate."""
        return 1.0 / (1.0 + self.share * (self.factor - 1.0))

    def times(self, start_us: int, steady_us: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return the times at which so much steady time, which ascends, is over since `start_us`."""
        period, burst_us = self.period_us, self.share * self.period_us
        in_burst = self.factor * self.calm * burst_us
        whole, phase = divmod(start_us, period)
        begun = self.factor * self.calm * phase if phase < burst_us else in_burst + self.calm * (phase - burst_us)
        periods = np.floor((begun + steady_us) / period)
        rest = begun + steady_us - periods * period
        after = np.where(rest < in_burst, rest / (self.factor * self.calm), burst_us + (rest - in_burst) / self.calm)
        found = (whole + periods.astype(np.int64)) * period + after.clip(0.0, period).astype(np.int64)
        times: npt.NDArray[np.int64] = np.maximum.accumulate(np.maximum(found, start_us))
        return times


def ramp_times(start_us: int, steady_us: npt.NDArray[np.float64], factor: float) -> npt.NDArray[np.int64]:
    """Return the times of rows whose rate moves evenly, from 1 at `start_us` to `factor` when the last of them comes.

    `steady_us`, which ascends, are the times at which they would come at rate 1.
    """
    if not 0.0 < factor < float("inf"):
        raise ValueError("factor must be above 0")
    if not len(steady_us) or factor == 1.0:
        return start_us + steady_us.astype(np.int64)
    # Rate 1 + slope * t; its integral is the steady time: solve the quadratic equation for t.
    slope = (factor * factor - 1.0) / (2.0 * max(float(steady_us[-1]), 1.0))
    passed = (np.sqrt(np.maximum(1.0 + 2.0 * slope * steady_us, 0.0)) - 1.0) / slope
    return start_us + passed.astype(np.int64)
