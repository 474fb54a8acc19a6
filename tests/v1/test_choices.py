from enum import StrEnum

import pytest
from google.protobuf.descriptor import EnumDescriptor

from skyband.errors import DefinitionError
from skyband.model import query, stream
from skyband.v1 import types_pb2 as pb
from skyband.v1.choices import member, number

ENUMS: list[tuple[EnumDescriptor, type[StrEnum]]] = [
    (pb.Format.DESCRIPTOR, stream.Format),
    (pb.TimeUnit.DESCRIPTOR, stream.TimeUnit),
    (pb.OutOfRange.DESCRIPTOR, stream.OutOfRange),
    (pb.Identity.DESCRIPTOR, stream.Identity),
    (pb.Aggregate.DESCRIPTOR, stream.Aggregate),
    (pb.Late.DESCRIPTOR, stream.Late),
    (pb.IdleThen.DESCRIPTOR, stream.IdleThen),
    (pb.Kind.DESCRIPTOR, query.Kind),
    (pb.Order.DESCRIPTOR, query.Order),
    (pb.Algorithm.DESCRIPTOR, query.Algorithm),
    (pb.QueryState.DESCRIPTOR, query.QueryState),
]


@pytest.mark.parametrize(("enum", "kind"), ENUMS)
def test_the_api_has_every_choice_of_the_model_and_no_other(enum: EnumDescriptor, kind: type[StrEnum]) -> None:
    numbers = [number(enum, choice) for choice in kind]
    assert sorted(numbers) == sorted(value.number for value in enum.values if value.number)
    assert [member(enum, kind, value, "f") for value in numbers] == list(kind)


def test_nothing_said_is_the_default() -> None:
    assert member(pb.Order.DESCRIPTOR, query.Order, 0, "query.order") is None


def test_a_number_of_a_newer_version_is_refused() -> None:
    with pytest.raises(DefinitionError, match="ORDER_HIGHEST, ORDER_LOWEST"):
        member(pb.Order.DESCRIPTOR, query.Order, 3, "query.order")
