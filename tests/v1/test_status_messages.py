from hypothesis import given, settings

from skyband.model.status import QueryStatus
from skyband.v1 import control_pb2 as pb
from skyband.v1.messages import read_status, write_status
from tests.v1 import values


@settings(max_examples=40)
@given(values.statuses)
def test_a_status_comes_back_from_its_message_as_it_was(status: QueryStatus) -> None:
    assert read_status(pb.QueryStatus.FromString(write_status(status).SerializeToString())) == status


def test_what_is_not_known_is_not_said() -> None:
    message = write_status(QueryStatus())
    assert not message.HasField("rows_in")
    assert not message.HasField("last_result_time")
