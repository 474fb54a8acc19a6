from typing import Any

import grpc
import pytest
from grpc_status import rpc_status  # type: ignore[import-untyped]

from services.runtime.grpc_errors import Conflict, status_of
from skyband.client.errors import error_of, is_outdated, is_passing
from skyband.errors import (
    AlreadyExistsError,
    CapacityError,
    ConflictError,
    DefinitionError,
    InputError,
    LogError,
    NotFoundError,
    NotServedError,
    SkybandError,
)


class Failure(grpc.RpcError):
    """A failed call, as gRPC raises it."""

    def __init__(self, code: grpc.StatusCode, details: str, metadata: Any = ()) -> None:
        self._code, self._details, self._metadata = code, details, metadata

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> Any:
        return self._metadata


def failure_of(error: Exception, conflict: Conflict = Conflict.STATE) -> Failure:
    status = rpc_status.to_status(status_of(error, conflict))
    return Failure(status.code, status.details, status.trailing_metadata)


@pytest.mark.parametrize(
    "kind",
    [
        AlreadyExistsError,
        CapacityError,
        ConflictError,
        DefinitionError,
        InputError,
        LogError,
        NotFoundError,
        NotServedError,
    ],
)
def test_an_error_of_the_server_comes_back_as_it_was(kind: type[SkybandError]) -> None:
    found = error_of(failure_of(kind("k of query 'q' is wrong; mend it")), "here:1")
    assert type(found) is kind
    assert str(found) == "k of query 'q' is wrong; mend it"


def test_a_place_comes_back_with_its_error() -> None:
    sent = DefinitionError("wrong", field="query.score", source_text="a + b", column=4, length=1)
    found = error_of(failure_of(sent), "here:1")
    assert isinstance(found, DefinitionError)
    assert (found.field, found.pointer()) == ("query.score", "a + b\n    ^")


def test_what_the_server_hides_stays_hidden() -> None:
    found = error_of(failure_of(KeyError("secret")), "here:1")
    assert type(found) is SkybandError
    assert "secret" not in str(found)


@pytest.mark.parametrize(
    ("code", "details", "sentence"),
    [
        (
            grpc.StatusCode.UNAVAILABLE,
            "failed to connect to all addresses; last error: UNKNOWN: ipv4:1.2.3.4: connect: Connection refused (111)",
            "cannot reach Skyband at here:1 (Connection refused (111)); is it running there?",
        ),
        (grpc.StatusCode.UNAVAILABLE, "Socket closed", "cannot reach Skyband at here:1 (Socket closed)"),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", "did not answer in time"),
        (grpc.StatusCode.UNIMPLEMENTED, "Method not found!", "is that the right address?"),
        (grpc.StatusCode.CANCELLED, "Channel closed!", "the client was closed"),
        (grpc.StatusCode.UNAUTHENTICATED, "who are you", "(unauthenticated): who are you"),
        (grpc.StatusCode.UNKNOWN, "", "UNKNOWN"),
    ],
)
def test_what_no_server_of_skyband_said_is_put_in_words(code: grpc.StatusCode, details: str, sentence: str) -> None:
    assert sentence in str(error_of(Failure(code, details), "here:1"))


def test_only_what_passes_by_itself_is_tried_again() -> None:
    assert is_passing(failure_of(LogError("wait")))
    assert is_passing(Failure(grpc.StatusCode.UNAVAILABLE, "Socket closed"))
    assert not is_passing(failure_of(NotFoundError("no")))
    assert not is_passing(KeyboardInterrupt())
    assert is_outdated(failure_of(ConflictError("old"), Conflict.RESUME_TOKEN))
    assert not is_outdated(failure_of(ConflictError("old")))
