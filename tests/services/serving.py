"""A gRPC server in this process, on an event loop of its own, as the processes have it."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import grpc
import pytest
from google.rpc import error_details_pb2  # type: ignore[import-untyped]
from grpc_status import rpc_status  # type: ignore[import-untyped]

T = TypeVar("T")
Register = Callable[[Any], None]


class Server:
    """Serves from its making until `stop`; a port that was given can be taken again by another one."""

    def __init__(self, *register: Register, port: int = 0, tls: grpc.ServerCredentials | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._pool = ThreadPoolExecutor(8)
        self._is_up = True
        self.port = self._run(self._start(register, port, tls))
        self.address = f"localhost:{self.port}"

    def stop(self, grace_s: float | None = None) -> None:
        """Stop; without a grace, calls under way are broken off."""
        if self._is_up:
            self._is_up = False
            self._run(self._stop(grace_s))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._pool.shutdown()

    async def _stop(self, grace_s: float | None) -> None:
        await self._server.stop(grace_s)
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        if rest:
            await asyncio.wait(rest, timeout=5)

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _start(self, register: tuple[Register, ...], port: int, tls: grpc.ServerCredentials | None) -> int:
        self._server = grpc.aio.server(self._pool, options=[("grpc.so_reuseport", 0)])
        for add in register:
            add(self._server)
        address = f"localhost:{port}"
        add = self._server.add_insecure_port
        found = add(address) if tls is None else self._server.add_secure_port(address, tls)
        await self._server.start()
        return found


class Refusal:
    """What a refused call said."""

    code: grpc.StatusCode
    message: str
    reason: str
    metadata: dict[str, str]
    violations: list[tuple[str, str]]


@contextmanager
def refused() -> Iterator[Refusal]:
    """Expect the block's call to be refused, and give what was said."""
    found = Refusal()
    with pytest.raises(grpc.RpcError) as caught:
        yield found
    call: Any = caught.value
    found.code, found.message, found.violations = call.code(), call.details(), []
    found.reason, found.metadata = "", {}
    status = rpc_status.from_call(call)
    for detail in status.details if status is not None else ():
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        if detail.Unpack(info):
            assert info.domain == "skyband"
            found.reason, found.metadata = info.reason, dict(info.metadata)
        elif detail.Unpack(bad):
            found.violations += [(one.field, one.description) for one in bad.field_violations]
