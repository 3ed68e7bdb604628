"""The live page's server answers requests of any form, and prints nothing about them."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from backsweep.agent.session.live.server import Server, as_json


@pytest.fixture
def server() -> Iterator[Server]:
    serving = Server(0, {"/": lambda query: as_json(query), "/large": lambda query: ("text/plain", bytes(1 << 24))})
    yield serving
    serving.close()


def answer(server: Server, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while part := connection.recv(1 << 16):
            found += part
    return found


def request(server: Server, path: str, host: str | None = None) -> bytes:
    host = f"127.0.0.1:{server.port}" if host is None else host
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()


def test_paths_of_any_form_are_answered(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    assert answer(server, request(server, "/?a=1")).endswith(b'{"a":"1"}')
    for path, status in {
        "http://[/": b"400",
        "http://127.0.0.1]/": b"400",
        "/../../etc/passwd": b"404",
        "/%2e%2e/": b"404",
        "//elsewhere/": b"404",
        "/" + "a" * 60_000: b"404",
        "/" + "a" * 70_000: b"414",
    }.items():
        assert answer(server, request(server, path)).split(b" ")[1] == status, path[:20]
    for host in ("", "evil.example", f"evil.example:{server.port}", f"127.0.0.1.evil.example:{server.port}"):
        assert answer(server, request(server, "/", host)).split(b" ")[1] == b"403"
    assert answer(server, b"\x00\xff\r\n\r\n").count(b"400")
    assert capfd.readouterr().err == ""


def test_a_page_that_is_closed_early_is_no_error(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    for _ in range(3):
        connection = socket.create_connection(("127.0.0.1", server.port))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # close by a reset
        connection.sendall(request(server, "/large"))
        connection.recv(1000)
        connection.close()
    assert len(answer(server, request(server, "/large"))) > 1 << 24
    server.close()
    assert capfd.readouterr().err == ""
