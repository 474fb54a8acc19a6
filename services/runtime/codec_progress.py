"""How stages are doing, as Avro records; see schemas/progress.avsc."""

from services.runtime.codec_marks import read_offsets, write_offsets
from services.runtime.codec_value import AvroRecord, ValueCodec, plain
from skyband.model.approximation import Approximation
from skyband.model.partials import MergeProgress
from skyband.model.status import Holder, QueryReport, ShardReport, SourceReport

__all__ = ["PROGRESS"]

_SHARD = plain(ShardReport)
_SOURCE = plain(SourceReport)
_MERGE = plain(MergeProgress)
_HOLDER = plain(Holder)
_QUERY = plain(QueryReport)
_APPROXIMATION = plain(Approximation)


def _write_shard(report: ShardReport) -> AvroRecord:
    holder = report.holder and _HOLDER.write(report.holder)
    return {**_SHARD.write(report), "holder": holder, "queries": [_write_query(query) for query in report.queries]}


def _read_shard(record: AvroRecord) -> ShardReport:
    holder = None if record["holder"] is None else Holder(**record["holder"])
    queries = tuple(_read_query(query) for query in record["queries"])
    return ShardReport(**{**record, "holder": holder, "queries": queries})


def _write_query(report: QueryReport) -> AvroRecord:
    approximation = report.approximation and _APPROXIMATION.write(report.approximation)
    return {**_QUERY.write(report), "approximation": approximation}


def _read_query(record: AvroRecord) -> QueryReport:
    found = record["approximation"]
    return QueryReport(**{**record, "approximation": None if found is None else Approximation(**found)})


def _write_source(report: SourceReport) -> AvroRecord:
    rejected = [{"reason": reason, "records": records} for reason, records in report.rejected]
    return {**_SOURCE.write(report), "rejected": rejected}


def _read_source(record: AvroRecord) -> SourceReport:
    rejected = tuple((its["reason"], its["records"]) for its in record["rejected"])
    return SourceReport(**{**record, "rejected": rejected})


def _write_merge(progress: MergeProgress) -> AvroRecord:
    return {**_MERGE.write(progress), "results_to": write_offsets(progress.results_to)}


def _read_merge(record: AvroRecord) -> MergeProgress:
    return MergeProgress(**{**record, "results_to": read_offsets(record["results_to"])})


PROGRESS = (
    ValueCodec("ShardReport", ShardReport, _write_shard, _read_shard),
    ValueCodec("SourceReport", SourceReport, _write_source, _read_source),
    ValueCodec("MergeProgress", MergeProgress, _write_merge, _read_merge),
)
