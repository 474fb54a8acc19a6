"""A small HTTP server for the tests of those who ask one."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Answers(http.server.BaseHTTPRequestHandler):
    """Answers as `answer` says, and logs nothing."""

    def answer(self) -> tuple[int, bytes]:
        """Return status and body for the request that has come."""
        raise NotImplementedError

    def do_GET(self) -> None:
        status, body = self.answer()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def answering(handler: type[Answers]) -> Iterator[str]:
    """Serve until the block ends; the value is the address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
