import grpc
import pytest
import structlog
from grpc_status import rpc_status  # type: ignore[import-untyped]

from services.runtime.grpc_errors import Conflict, status_of
from skyband.errors import (
    AlreadyExistsError,
    CapacityError,
    ConflictError,
    CoverageGapError,
    DefinitionError,
    InputError,
    LogError,
    NotFoundError,
    NotServedError,
    SkybandError,
)

Code = grpc.StatusCode


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DefinitionError("no"), Code.INVALID_ARGUMENT),
        (NotServedError("no"), Code.FAILED_PRECONDITION),
        (InputError("no"), Code.INVALID_ARGUMENT),
        (NotFoundError("no"), Code.NOT_FOUND),
        (AlreadyExistsError("no"), Code.ALREADY_EXISTS),
        (ConflictError("no"), Code.FAILED_PRECONDITION),
        (CapacityError("no"), Code.RESOURCE_EXHAUSTED),
        (LogError("no"), Code.UNAVAILABLE),
        (CoverageGapError("no", stream="a", partition=0, expected=1, found=2), Code.UNAVAILABLE),
    ],
)
def test_each_error_has_its_code_and_keeps_its_sentence(error: SkybandError, code: grpc.StatusCode) -> None:
    status = rpc_status.to_status(status_of(error))
    assert (status.code, status.details) == (code, "no")


@pytest.mark.parametrize(
    ("conflict", "code"),
    [
        (Conflict.STATE, Code.FAILED_PRECONDITION),
        (Conflict.ETAG, Code.ABORTED),
        (Conflict.RESUME_TOKEN, Code.OUT_OF_RANGE),
    ],
)
def test_a_conflict_is_what_the_caller_knows_it_to_be(conflict: Conflict, code: grpc.StatusCode) -> None:
    assert rpc_status.to_status(status_of(ConflictError("no"), conflict)).code is code


@pytest.mark.parametrize("error", [KeyError("secret"), SkybandError("secret"), AssertionError("secret")])
def test_what_nobody_raised_on_purpose_is_logged_and_hidden(error: Exception) -> None:
    with structlog.testing.capture_logs() as logged:
        status = status_of(error)
    assert [(entry["event"], entry["exc_info"]) for entry in logged] == [("call failed", error)]
    assert rpc_status.to_status(status).code is Code.INTERNAL
    assert "secret" not in str(status)


def test_a_place_in_a_file_of_the_server_is_not_told() -> None:
    error = DefinitionError("wrong", field="query.k", place="/etc/skyband.yaml:3:1")
    assert status_of(error).message == "wrong"
