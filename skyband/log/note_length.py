"""How long a note may be that is stored with a commit; every log says the same."""

from skyband.errors import LogError
from skyband.log.record_log import Position

__all__ = ["MOST_NOTE_CHARACTERS", "check_note"]

MOST_NOTE_CHARACTERS = 1_000


def check_note(group: str, position: Position, note: str) -> None:
    """Raise LogError for a note that is too long: brokers would refuse the commit, without saying why."""
    if len(note) > MOST_NOTE_CHARACTERS:
        raise LogError(
            f"group {group!r} commits topic {position.topic!r} partition {position.partition} with a note of "
            f"{len(note):,} characters; keep it within {MOST_NOTE_CHARACTERS:,}"
        )
