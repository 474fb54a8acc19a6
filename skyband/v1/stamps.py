"""What every resource has: uid, revision, etag and times."""

from typing import Protocol

from google.protobuf.timestamp_pb2 import Timestamp

from skyband.model.resources import Stamp
from skyband.v1.times import timestamp, timestamp_us

__all__ = ["Stamped", "read_stamp", "write_stamp"]


class Stamped(Protocol):
    """A message of a resource."""

    uid: str
    revision: int
    etag: str

    @property
    def create_time(self) -> Timestamp:
        """When it was created."""

    @property
    def update_time(self) -> Timestamp:
        """When it was changed last."""


def write_stamp(message: Stamped, stamp: Stamp) -> None:
    """Set the fields of `stamp`."""
    message.uid = stamp.uid
    message.revision = stamp.revision
    message.etag = stamp.etag
    message.create_time.CopyFrom(timestamp(stamp.created_us))
    message.update_time.CopyFrom(timestamp(stamp.updated_us))


def read_stamp(message: Stamped) -> Stamp:
    """Return the stamp of a resource that a server has sent."""
    return Stamp(
        uid=message.uid,
        revision=message.revision,
        created_us=timestamp_us(message.create_time, "create_time"),
        updated_us=timestamp_us(message.update_time, "update_time"),
    )
