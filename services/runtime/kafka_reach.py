"""Whether Kafka can be reached, as all clients of a process see it."""

import threading
import time
from collections.abc import Callable

from confluent_kafka import KafkaError

from services.runtime.kafka_errors import UNREACHABLE, unreachable

__all__ = ["KafkaReach"]

# These say that no broker is left to talk to; a single broken connection does not.
_CUT_OFF = frozenset({KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION, KafkaError._RESOLVE})


class KafkaReach:
    """Notes what clients are told, from any thread. Initially Kafka counts as within reach, until a client is cut off.

    `trouble` is that in words, for health; None again after any answer of a broker.
    """

    def __init__(self, bootstrap: str, patience_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.bootstrap = bootstrap
        self._patience_s = patience_s
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._since: float | None = None
        self._detail = ""
        self._has_answered = False

    @property
    def trouble(self) -> str | None:
        """Why Kafka cannot be reached, or None."""
        with self._lock:
            return None if self._since is None else str(unreachable(self.bootstrap, self._detail))

    @property
    def has_answered(self) -> bool:
        """Whether a broker has ever answered."""
        return self._has_answered

    @property
    def detail(self) -> str:
        """What the last broken connection was said to suffer from, if anything."""
        with self._lock:
            return self._detail

    def note(self, error: KafkaError) -> None:
        """Take in what a client was told; for its error callback."""
        code = error.code()
        if code not in UNREACHABLE:
            return
        with self._lock:
            if code != KafkaError._ALL_BROKERS_DOWN:
                self._detail = error.str()
            elif not self._detail:
                # Said of a first connection it hints at a wrong protocol, see `unreachable`; of later ones it does not.
                self._detail = "all connections were closed" if self._has_answered else error.str()
            if code in _CUT_OFF and self._since is None:
                self._since = self._monotonic()

    def well(self) -> None:
        """Take in that a broker has answered."""
        self._has_answered = True
        if self._since is None and not self._detail:
            return
        with self._lock:
            self._since, self._detail = None, ""

    def check(self) -> None:
        """Raise LogError if Kafka has been out of reach for too long."""
        with self._lock:
            since, detail = self._since, self._detail
        if since is not None and self._monotonic() - since > self._patience_s:
            raise unreachable(self.bootstrap, detail)
