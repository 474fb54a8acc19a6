"""Names of the events that the engine logs."""

__all__ = ["SHARD_RESTORED", "SHARD_STOPPED"]

SHARD_RESTORED = "shard restored"
SHARD_STOPPED = "shard stopped"
