"""A process's gRPC server: its services, health and reflection, on an event loop of its own."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from services.runtime.security import ServerTls
from skyband.errors import SkybandError

__all__ = ["GrpcServer"]

_HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
_THREADS = 16
_STOP_S = 10.0


class GrpcServer:
    """Serves until `stop`; every call of it comes from the thread that made it.

    `register` are called with the server and the loop; servicers that are no coroutines run on a pool of 16 threads.
    """

    def __init__(
        self,
        listen: str,
        services: Sequence[str],
        register: Sequence[Callable[[grpc.aio.Server, asyncio.AbstractEventLoop], None]],
        tls: ServerTls | None = None,
    ) -> None:
        """Begin to listen at `listen` (host:port; port 0: any free one). Raises SkybandError if the port is taken."""
        self._listen = listen
        self._services = services
        self._register = register
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="grpc", daemon=True)
        self._health = HealthServicer()
        self._thread.start()
        self.address = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    def set_well(self, is_well: bool) -> None:
        """Tell health checks whether this process is well; may be called from any thread."""
        status = health_pb2.HealthCheckResponse.SERVING if is_well else health_pb2.HealthCheckResponse.NOT_SERVING
        asyncio.run_coroutine_threadsafe(self._set_status(status), self._loop)

    def stop(self, grace_s: float) -> None:
        """Take no more calls, give those that run `grace_s` to end, and stop."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._server.stop(grace_s), self._loop).result(grace_s + _STOP_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    async def _start(self) -> str:
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="grpc-call")
        # Without this option a second process would share the port, and take half of the calls.
        self._server = grpc.aio.server(self._pool, options=[("grpc.so_reuseport", 0)])
        for register in self._register:
            register(self._server, self._loop)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection.enable_server_reflection((*self._services, _HEALTH, reflection.SERVICE_NAME), self._server)
        await self._set_status(health_pb2.HealthCheckResponse.NOT_SERVING)
        host, _, _ = self._listen.rpartition(":")
        try:
            if self._tls is None:
                port = self._server.add_insecure_port(self._listen)
            else:
                port = self._server.add_secure_port(self._listen, self._tls.credentials())
        except RuntimeError as error:
            raise SkybandError(
                f"cannot listen at {self._listen}: the port is in use, or the address is none of this machine; "
                "give another one"
            ) from error
        await self._server.start()
        return f"{host}:{port}"

    async def _set_status(self, status: "health_pb2.HealthCheckResponse.ServingStatus.ValueType") -> None:
        for service in ("", *self._services):
            await self._health.set(service, status)
