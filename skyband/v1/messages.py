"""Messages of the API and the model's values that they stand for: `read_…` makes values, `write_…` makes messages.

What is wrong in a message raises DefinitionError, whose field is the path in the request (``query.window.size``).
"""

from skyband.v1.group_messages import (
    read_begin,
    read_group_resource,
    read_group_spec,
    write_begin,
    write_group_resource,
    write_group_spec,
)
from skyband.v1.query_messages import read_query, read_query_resource, write_query, write_query_resource
from skyband.v1.result_messages import read_candidates, read_deltas, read_result, write_delta, write_result
from skyband.v1.statistics_messages import read_statistics, write_statistics
from skyband.v1.status_messages import read_status, write_status
from skyband.v1.stream_messages import read_stream, read_stream_resource, write_stream, write_stream_resource

__all__ = [
    "read_begin",
    "read_candidates",
    "read_deltas",
    "read_group_resource",
    "read_group_spec",
    "read_query",
    "read_query_resource",
    "read_result",
    "read_statistics",
    "read_status",
    "read_stream",
    "read_stream_resource",
    "write_begin",
    "write_delta",
    "write_group_resource",
    "write_group_spec",
    "write_query",
    "write_query_resource",
    "write_result",
    "write_statistics",
    "write_status",
    "write_stream",
    "write_stream_resource",
]
