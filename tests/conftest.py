"""Settings for all tests: seeded examples, fresh kernels, one kernel cache per worker."""

import os

from hypothesis import HealthCheck, settings

from tools.stale_kernels import ROOT, forget_stale

# derandomize: the same examples on every run and machine. `explore` looks further; what it finds becomes an @example.
# No deadline: the first call of a kernel compiles it.
_calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("seeded", _calm, derandomize=True)
settings.register_profile("explore", _calm, max_examples=2_000)
settings.load_profile("seeded")

# Two processes that compile two signatures of one kernel at the same time may store one under the name of the other
# (numba writes the index, then the data, without a lock), and the next process would run the wrong code.
_worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
if _worker != "gw0":
    os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".kernels" / _worker)
elif "PYTEST_XDIST_WORKER" not in os.environ:
    forget_stale()
