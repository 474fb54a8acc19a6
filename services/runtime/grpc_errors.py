"""Errors as gRPC statuses: a code, the sentence, and details that a client can turn back into the same error.

=======================  =======================  ===================================
error                    code                     reason
=======================  =======================  ===================================
DefinitionError          INVALID_ARGUMENT         DEFINITION_INVALID
NotServedError           FAILED_PRECONDITION      NOT_SERVED
InputError               INVALID_ARGUMENT         INPUT_INVALID
NotFoundError            NOT_FOUND                NOT_FOUND
AlreadyExistsError       ALREADY_EXISTS           ALREADY_EXISTS
ConflictError            see Conflict             see Conflict
CapacityError            RESOURCE_EXHAUSTED       CAPACITY_EXCEEDED
LogError                 UNAVAILABLE              LOG_UNAVAILABLE
everything else          INTERNAL                 INTERNAL, and the traceback is logged
=======================  =======================  ===================================
"""

from enum import Enum
from typing import Any, NoReturn

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2  # type: ignore[import-untyped]
from grpc_status import rpc_status  # type: ignore[import-untyped]

from services.runtime.events import CALL_FAILED
from services.runtime.telemetry import get_logger
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

__all__ = ["DOMAIN", "Conflict", "refuse", "refuse_async", "status_of"]

DOMAIN = "skyband"


class Conflict(Enum):
    """What a ConflictError says, which only who called can know: (code, reason)."""

    STATE = (code_pb2.FAILED_PRECONDITION, "STATE_FORBIDS")
    ETAG = (code_pb2.ABORTED, "ETAG_OUTDATED")
    RESUME_TOKEN = (code_pb2.OUT_OF_RANGE, "RESUME_TOKEN_OUTDATED")


# The first kind that fits counts.
_KINDS: tuple[tuple[type[SkybandError], int, str], ...] = (
    (NotServedError, code_pb2.FAILED_PRECONDITION, "NOT_SERVED"),
    (DefinitionError, code_pb2.INVALID_ARGUMENT, "DEFINITION_INVALID"),
    (InputError, code_pb2.INVALID_ARGUMENT, "INPUT_INVALID"),
    (NotFoundError, code_pb2.NOT_FOUND, "NOT_FOUND"),
    (AlreadyExistsError, code_pb2.ALREADY_EXISTS, "ALREADY_EXISTS"),
    (CapacityError, code_pb2.RESOURCE_EXHAUSTED, "CAPACITY_EXCEEDED"),
    (LogError, code_pb2.UNAVAILABLE, "LOG_UNAVAILABLE"),
)


def status_of(error: Exception, conflict: Conflict = Conflict.STATE) -> status_pb2.Status:
    """Return the status that tells a client of `error`. What is no SkybandError is logged, and not told."""
    if isinstance(error, ConflictError):
        code, reason = conflict.value
        return _status(code, reason, error)
    for kind, code, reason in _KINDS:
        if isinstance(error, kind):
            return _status(code, reason, error)
    get_logger().error(CALL_FAILED, exc_info=error)
    hidden = SkybandError("the server has failed, and written down why; try again, or see its log")
    return _status(code_pb2.INTERNAL, "INTERNAL", hidden)


def refuse(context: grpc.ServicerContext, status: status_pb2.Status) -> NoReturn:
    """End a call with `status`; this raises, whichever server the call came to."""
    found = rpc_status.to_status(status)
    # Calls that an asyncio server runs on its thread pool know no abort_with_status.
    context.set_trailing_metadata(found.trailing_metadata)
    context.abort(found.code, found.details)


async def refuse_async(context: grpc.aio.ServicerContext[Any, Any], status: status_pb2.Status) -> NoReturn:
    """End a call of an asyncio server with `status`; this raises."""
    await context.abort_with_status(rpc_status.to_status(status))


def _status(code: int, reason: str, error: SkybandError) -> status_pb2.Status:
    sentence = error.message if isinstance(error, DefinitionError) else str(error)
    details: list[Message] = [error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN, metadata=_metadata(error))]
    if isinstance(error, DefinitionError) and error.field:
        violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=sentence, reason=reason)
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    status = status_pb2.Status(code=code, message=sentence)
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return status


def _metadata(error: SkybandError) -> dict[str, str]:
    """Return what a client needs to point at the mistake."""
    if not isinstance(error, DefinitionError):
        return {}
    metadata = {"field": error.field, "source_text": error.source_text}
    if error.column is not None:
        metadata |= {"column": str(error.column), "length": str(error.length)}
    return {key: text for key, text in metadata.items() if text}
