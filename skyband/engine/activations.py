"""What a shard would have told of its queries, had somebody listened when they began."""

from skyband.engine.checkpoint import Checkpoint
from skyband.engine.query_set import first_multiple_after
from skyband.model.duration import MIN_TIME_US
from skyband.model.partials import Activated

__all__ = ["activations_of"]


def activations_of(checkpoint: Checkpoint) -> list[Activated]:
    """Return for each query that a shard evaluates from which window end on, as of a checkpoint."""
    told = []
    for query in checkpoint.standing.queries:
        change, done = query.change, checkpoint.done.queries.get(query.change.uid)
        first = MIN_TIME_US if done is None else done.first
        if query.passed > MIN_TIME_US:
            first = max(first, first_multiple_after(change.query.window.slide, query.passed))
        told.append(
            Activated(checkpoint.group, checkpoint.generation, checkpoint.shard, change.uid, change.revision, first)
        )
    return told
