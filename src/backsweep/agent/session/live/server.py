"""Serves a run's page on 127.0.0.1, read-only, and only to requests whose host is this machine."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

ADDRESS = "127.0.0.1"
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:"

Answers = dict[str, Callable[[dict[str, str]], tuple[str, bytes] | None]]
"""By path: a function from the query to the type and bytes of the answer; None if there is nothing yet."""


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing if a page was closed while it was being answered: the terminal shows the run."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class Server:
    """A web server in its own thread, until `close`."""

    def __init__(self, port: int, answers: Answers) -> None:
        handler = type("Handler", (_Handler,), {"answers": answers})
        try:
            self._server = _Listener((ADDRESS, port), handler)
        except (OSError, OverflowError) as error:
            raise ValueError(f"live_port {port} cannot be used: {error}") from error
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="backsweep live page", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The server's address."""
        return f"http://{ADDRESS}:{self.port}/"

    def close(self) -> None:
        """Stop serving and free the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    answers: ClassVar[Answers] = {}
    protocol_version = "HTTP/1.1"
    timeout = 30  # seconds that an idle connection is kept

    def do_GET(self) -> None:
        port = self.server.server_address[1]  # type: ignore[index]
        # DNS rebinding: another site whose name resolves to this machine must not read the run.
        if self.headers.get("Host") not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            self._send(HTTPStatus.FORBIDDEN, "text/plain", b"only for requests to this machine\n")
            return
        try:
            asked = urlsplit(self.path)
        except ValueError:
            self._send(HTTPStatus.BAD_REQUEST, "text/plain", b"not an address\n")
            return
        answer = self.answers.get(asked.path)
        if answer is None:
            self._send(HTTPStatus.NOT_FOUND, "text/plain", b"not found\n")
            return
        found = answer({name: values[-1] for name, values in parse_qs(asked.query).items()})
        if found is None:
            self._send(HTTPStatus.NO_CONTENT, "text/plain", b"")
        else:
            self._send(HTTPStatus.OK, *found)

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the terminal shows the run."""


def as_json(value: Any) -> tuple[str, bytes]:
    """Return a JSON answer."""
    return "application/json", json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
