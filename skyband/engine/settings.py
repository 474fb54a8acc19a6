"""How an engine stage is set up."""

from dataclasses import dataclass

__all__ = ["EngineTopics", "EngineTuning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTopics:
    """What an engine stage reads and writes. Without `progress` it tells nobody how it is doing.

    All partials of a group go to one partition, `partials_partition`. `checkpoints` empty: a restart begins anew.
    """

    aligned: str
    partials: str = "partials"
    partials_partition: int = 0
    progress: str = ""
    checkpoints: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTuning:
    """How often an engine stage does what need not be done at each step, and its bounds; no result depends on it.

    Reports of more than a hundred queries come in proportion less often.
    """

    report_every_us: int = 1_000_000
    checkpoint_every_us: int = 5_000_000
    max_pending_bytes: int = 1 << 30
    max_records: int = 8
