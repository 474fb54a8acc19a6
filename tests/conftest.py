"""Settings for all tests: seeded examples, fresh kernels, one kernel cache per worker; a Kafka for those that ask."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tools.stale_kernels import ROOT, copy_compiled, forget_stale

if TYPE_CHECKING:
    from services.runtime.embedded import EmbeddedKafka

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
    _kernels = ROOT / ".kernels" / _worker
    copy_compiled(_kernels)
    os.environ["NUMBA_CACHE_DIR"] = str(_kernels)
elif "PYTEST_XDIST_WORKER" not in os.environ:
    forget_stale()


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedKafka]:
    """A real Apache Kafka, one broker a session (and worker); `.bootstrap` is its address. Not for tests that stop it.

    Topics keep their records, unless they say otherwise: tests write records of long ago, which Kafka would delete at
    any moment.
    """
    # Here, since most tests need none of what it stands on.
    from services.runtime.embedded import EmbeddedKafka

    with EmbeddedKafka(tmp_path_factory.mktemp("kafka"), properties={"log.retention.ms": "-1"}) as broker:
        yield broker


@pytest.fixture
def topic_name() -> str:
    """A name that no other test uses; the topic is not made yet."""
    return f"topic-{uuid.uuid4().hex[:12]}"
