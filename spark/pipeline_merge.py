"""The merge in the pipeline: what the shards of a group tell in, results and marks out.

Its state is what a merge keeps in any case, its checkpoint and its marks, and the values that are not all decided::

    facts          how many values it has taken, and where the entries of values begin
    checkpoint     of the merge
    mark/<uid>     of each query
    values/<n>     values from the one before which it had taken n
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from operator import itemgetter

from skyband.fanout.activation import Mark, MergeCheckpoint
from skyband.fanout.merger import Merger
from skyband.model.catalog import QueryChange
from skyband.model.partials import Activated, PartialBatch, Progress
from spark.pipeline_codecs import codecs
from spark.pipeline_messages import Message, in_order, pack, unpack, unpack_offset
from spark.pipeline_plan import PipelinePlan
from spark.pipeline_shards import CHANGES
from spark.pipeline_state import Live, LiveParts, Table, chained, read_facts, write_facts

__all__ = ["CHECKPOINT", "FRONTIER", "MARKS", "NO_PARTITION", "RESULTS", "MergePart"]

RESULTS, MARKS, CHECKPOINT, FRONTIER = "results", "marks", "checkpoint", "frontier"
# No partition of a topic holds its values: whoever takes the marks over need not look for them.
NO_PARTITION = -1
_CHECKPOINT, _MARK = "checkpoint", "mark/"
_LIVE: LiveParts[Merger] = LiveParts()


@dataclass(frozen=True, slots=True)
class _Facts:
    """Where a merge stands: values taken and their digest, and the first value of each entry that is kept."""

    taken: int = 0
    digest: str = ""
    entries: tuple[int, ...] = ()


class MergePart:
    """The merge of a group during one micro-batch; what lasts is in `table`. Initially it has taken nothing."""

    def __init__(self, plan: PipelinePlan, key: str, table: Table, live: LiveParts[Merger] = _LIVE) -> None:
        self._plan, self._key, self._table, self._live = plan, key, table, live
        facts = read_facts(table)
        self._facts = _Facts() if facts is None else _Facts(facts["taken"], facts["digest"], tuple(facts["entries"]))

    def take(self, messages: Iterable[Message]) -> list[Message]:
        """Take what shards tell in the micro-batch, and return what has become complete.

        Raises CapacityError if too many rows wait.
        """
        merger = self._merger()
        ordered = in_order(messages)
        changes = sorted({unpack_offset(its) for each in ordered if each.part == CHANGES for its in unpack(each.data)})
        for offset, data in changes:
            change = codecs().decode("catalog", data)
            assert isinstance(change, QueryChange)
            merger.change_query(change, offset)
        values = [data for each in ordered if each.part != CHANGES for data in unpack(each.data)]
        self._accept(merger, values, self._facts.taken)
        entry = pack(values)
        facts = self._facts
        if values:
            self._table.put(_values(facts.taken), entry)
            facts = replace(facts, taken=facts.taken + len(values), entries=(*facts.entries, facts.taken))
        self._facts = replace(facts, digest=chained(facts.digest, entry + pack(data for _, data in changes)))
        told = self._tell(merger)
        self._live.keep(self._key, Live(merger, self._facts.taken, self._facts.digest))
        return told

    def _merger(self) -> Merger:
        """Return the merge as of the values taken: from memory if it is there, else made anew."""
        plan, facts = self._plan, self._facts
        live = self._live.take(plan.run, self._key)
        if live is not None and live.digest == facts.digest:
            return live.it
        merger = Merger(plan.group.name, plan.generation, plan.group.shards, partitions=(NO_PARTITION,))
        checkpoint = self._table.get(_CHECKPOINT)
        if checkpoint is None:
            merger.carry_over(plan.carried)
            return merger
        marks = {
            name.removeprefix(_MARK): codecs().decode("marks", self._table.get(name))
            for name in self._table.names()
            if name.startswith(_MARK)
        }
        stored = codecs().decode("marks", checkpoint)
        assert isinstance(stored, MergeCheckpoint)
        merger.restore(stored, {uid: mark for uid, mark in marks.items() if isinstance(mark, Mark)})
        for begin in facts.entries:
            self._accept(merger, unpack(self._table.get(_values(begin)) or b""), begin)
        merger.skip_to(NO_PARTITION, facts.taken)
        return merger

    @staticmethod
    def _accept(merger: Merger, values: Iterable[bytes], begin: int) -> None:
        for offset, data in enumerate(values, begin):
            value = codecs().decode("partials", data)
            assert isinstance(value, PartialBatch | Progress | Activated)
            merger.accept(value, NO_PARTITION, offset)

    def _tell(self, merger: Merger) -> list[Message]:
        """Keep what the merge must remember, and return what is new."""
        results = [codecs().encode("results", result) or b"" for result in merger.take()]
        marks = []
        for uid, mark in sorted(merger.take_changed_marks().items(), key=itemgetter(0)):
            data = codecs().encode("marks", mark)
            marks += [uid.encode(), data or b""]
            if data is None:
                self._table.remove(_MARK + uid)
            else:
                self._table.put(_MARK + uid, data)
        checkpoint = codecs().encode("marks", merger.checkpoint()) or b""
        self._table.put(_CHECKPOINT, checkpoint)
        self._forget(merger.needed()[NO_PARTITION])
        write_facts(self._table, asdict(self._facts))
        told = [Message(RESULTS, pack(results)), Message(MARKS, pack(marks)), Message(CHECKPOINT, checkpoint)]
        if merger.written_to_us is not None:
            told.append(Message(FRONTIER, b"", merger.written_to_us))
        return told

    def _forget(self, needed: int) -> None:
        """Forget the entries of which nothing is needed."""
        entries = self._facts.entries
        done = max(0, bisect_right((*entries, self._facts.taken), needed) - 1)
        for begin in entries[:done]:
            self._table.remove(_values(begin))
        self._facts = replace(self._facts, entries=entries[done:])


def _values(begin: int) -> str:
    return f"values/{begin}"
