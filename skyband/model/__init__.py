"""Values: streams, groups, queries, scores, results; they check themselves."""

from skyband.model.approximation import Approximation
from skyband.model.catalog import CATALOG_STREAM, QueryChange
from skyband.model.definitions import Definitions
from skyband.model.duration import MAX_TIME_US, MIN_TIME_US, format_duration, parse_duration
from skyband.model.group import Column, Group
from skyband.model.partials import Activated, Contender, Evaluation, PartialBatch, Progress
from skyband.model.plan import Plan
from skyband.model.query import Algorithm, Kind, Order, Query, QueryState, Window
from skyband.model.result import Candidate, Change, Delta, Result, ResultRow
from skyband.model.source_rows import DeadLetter, Reason, SourceRows
from skyband.model.stream import (
    Aggregate,
    Attribute,
    Fields,
    Format,
    Identity,
    IdleThen,
    Late,
    OutOfRange,
    Stream,
    TimeUnit,
)

__all__ = [
    "CATALOG_STREAM",
    "MAX_TIME_US",
    "MIN_TIME_US",
    "Activated",
    "Aggregate",
    "Algorithm",
    "Approximation",
    "Attribute",
    "Candidate",
    "Change",
    "Column",
    "Contender",
    "DeadLetter",
    "Definitions",
    "Delta",
    "Evaluation",
    "Fields",
    "Format",
    "Group",
    "Identity",
    "IdleThen",
    "Kind",
    "Late",
    "Order",
    "OutOfRange",
    "PartialBatch",
    "Plan",
    "Progress",
    "Query",
    "QueryChange",
    "QueryState",
    "Reason",
    "Result",
    "ResultRow",
    "SourceRows",
    "Stream",
    "TimeUnit",
    "Window",
    "format_duration",
    "parse_duration",
]
