"""Names on a cluster that is shared: Skyband's own topics, groups and transactional ids may have a prefix."""

from services.runtime.topics import Topics
from skyband.errors import LogError

__all__ = ["KafkaNames"]


class KafkaNames:
    """Translates names. Source topics belong to users and keep theirs; without a prefix, all do."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self._own = Topics() if prefix else None

    def topic(self, name: str) -> str:
        """Return what a topic is called on the cluster."""
        return self.prefix + name if self._is_own(name) else name

    def topic_here(self, topic: str) -> str:
        """Return what a topic of the cluster is called in Skyband."""
        name = topic.removeprefix(self.prefix)
        return name if self._is_own(name) else topic

    def group(self, name: str) -> str:
        """Return what a consumer group or a transactional id is called on the cluster."""
        return self.prefix + name

    def _is_own(self, name: str) -> bool:
        if self._own is None:
            return False
        try:
            self._own.topic_of(name)
        except LogError:
            return False
        return True
