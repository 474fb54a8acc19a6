"""What a server refused, as the error that it raised there."""

from collections.abc import Callable, Mapping
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]

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

__all__ = ["error_of", "is_outdated", "is_passing"]

_DETAILS = "grpc-status-details-bin"
_DOMAIN = "skyband"


def error_of(failure: Any, address: str) -> SkybandError:
    """Return the error behind a failed call to `address`, with the server's sentence."""
    reason, metadata = _reason(failure)
    sentence = failure.details() or failure.code().name
    kind = _KINDS.get(reason)
    if kind is not None:
        return kind(sentence, metadata)
    match failure.code():
        case grpc.StatusCode.UNAVAILABLE:
            return SkybandError(f"cannot reach Skyband at {address} ({_short(sentence)}); is it running there?")
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return SkybandError(f"Skyband at {address} did not answer in time; try again, or give more time")
        case grpc.StatusCode.UNIMPLEMENTED:
            return SkybandError(f"what answers at {address} does not know this call; is that the right address?")
        case grpc.StatusCode.CANCELLED:
            return SkybandError(f"the call to {address} was given up, because the client was closed")
        case code:
            return SkybandError(f"Skyband at {address} refused the call ({code.name.lower()}): {_short(sentence)}")


def is_passing(failure: BaseException) -> bool:
    """Return whether a call failed for something that passes by itself: it may be tried again."""
    return isinstance(failure, grpc.RpcError) and _code(failure) is grpc.StatusCode.UNAVAILABLE


def is_outdated(failure: BaseException) -> bool:
    """Return whether a subscription failed because its token is outdated."""
    return isinstance(failure, grpc.RpcError) and _code(failure) is grpc.StatusCode.OUT_OF_RANGE


def _code(failure: Any) -> grpc.StatusCode:
    found: grpc.StatusCode = failure.code()
    return found


def _reason(failure: Any) -> tuple[str, Mapping[str, str]]:
    """Return reason and metadata that the server gave, or nothing."""
    for key, value in failure.trailing_metadata() or ():
        if key != _DETAILS:
            continue
        for detail in status_pb2.Status.FromString(value).details:
            info = error_details_pb2.ErrorInfo()
            if detail.Unpack(info) and info.domain == _DOMAIN:
                return info.reason, dict(info.metadata)
    return "", {}


def _plain(kind: type[SkybandError]) -> Callable[[str, Mapping[str, str]], SkybandError]:
    return lambda sentence, metadata: kind(sentence)


def _pointing(kind: type[DefinitionError]) -> Callable[[str, Mapping[str, str]], SkybandError]:
    return lambda sentence, metadata: kind(
        sentence,
        field=metadata.get("field"),
        source_text=metadata.get("source_text"),
        column=int(metadata["column"]) if "column" in metadata else None,
        length=int(metadata.get("length", "1")),
    )


_KINDS: dict[str, Callable[[str, Mapping[str, str]], SkybandError]] = {
    "DEFINITION_INVALID": _pointing(DefinitionError),
    "NOT_SERVED": _pointing(NotServedError),
    "INPUT_INVALID": _plain(InputError),
    "NOT_FOUND": _plain(NotFoundError),
    "ALREADY_EXISTS": _plain(AlreadyExistsError),
    "STATE_FORBIDS": _plain(ConflictError),
    "ETAG_OUTDATED": _plain(ConflictError),
    "RESUME_TOKEN_OUTDATED": _plain(ConflictError),
    "CAPACITY_EXCEEDED": _plain(CapacityError),
    "LOG_UNAVAILABLE": _plain(LogError),
    "INTERNAL": _plain(SkybandError),
}


def _short(sentence: str) -> str:
    """Return the end of gRPC's account of a failure, where the reason stands."""
    return sentence.rsplit("; last error: ", 1)[-1].rsplit(": ", 1)[-1].rstrip(".")
