"""How a process is doing: which of its parts are in trouble, in words."""

from collections.abc import Callable, Mapping
from threading import Lock

__all__ = ["Health"]


class Health:
    """The troubles of a process's parts. Any thread may tell and ask.

    Initially nothing is in trouble, and the process is not ready. `changed` is called with whether it is well, ready
    and without trouble, whenever that may have changed.
    """

    def __init__(self, changed: Callable[[bool], None] | None = None) -> None:
        self._lock = Lock()
        self._troubles: dict[str, str] = {}
        self._ready = False
        self._changed = changed

    @property
    def troubles(self) -> Mapping[str, str]:
        """What is wrong, by part."""
        with self._lock:
            return dict(self._troubles)

    @property
    def is_well(self) -> bool:
        """Whether the process is ready and nothing is in trouble."""
        with self._lock:
            return self._ready and not self._troubles

    def ready(self) -> None:
        """Note that the process has begun its work."""
        if not self._ready:
            self._ready = True
            self._tell()

    def ill(self, part: str, why: str) -> bool:
        """Note what is wrong with a part; return whether that is news."""
        with self._lock:
            is_news = self._troubles.get(part) != why
            self._troubles[part] = why
        self._tell()
        return is_news

    def well(self, part: str) -> bool:
        """Note that nothing is wrong with a part; return whether that is news."""
        with self._lock:
            is_news = self._troubles.pop(part, None) is not None
        if is_news:
            self._tell()
        return is_news

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed(self.is_well)
