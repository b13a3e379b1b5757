"""Stands between two parties and spoils what passes: drops, loses answers, repeats, garbles. Without TLS only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

FAULTS = ("drop", "lose", "twice", "garble", "spoil", "refuse", "fine")


class Between(ThreadingHTTPServer):
    """Forwards to `port`; the n-th call suffers the n-th fault of the list, over and over."""

    daemon_threads = True

    def __init__(self, port: int, faults: tuple[str, ...]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.goal, self.faults, self.turn, self.calls = port, faults, Lock(), 0
        self.suffered: list[str] = []

    def next_fault(self) -> str:
        with self.turn:
            fault = self.faults[self.calls % len(self.faults)]
            self.calls += 1
            self.suffered.append(fault)
            return fault

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that hangs up is no news here."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Between

    def handle_call(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        fault = self.server.next_fault()
        if fault == "drop":
            self.close_connection = True
            return
        if fault == "refuse":
            self.answer(422, b"")
            return
        if fault == "spoil" and len(body) > 70:
            body = body[:-5] + bytes([body[-5] ^ 1]) + body[-4:]
        for _ in range(2 if fault == "twice" else 1):
            status, answer = self.forwarded(body)
        if fault == "lose":
            self.close_connection = True
            return
        if fault == "garble" and len(answer) >= 64:
            answer = b"XX" + answer[2:]
        self.answer(status, answer)

    def answer(self, status: int, answer: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def forwarded(self, body: bytes) -> tuple[int, bytes]:
        onwards = HTTPConnection("127.0.0.1", self.server.goal, timeout=30)
        try:
            kept = {
                name: value for name, value in self.headers.items() if name.startswith(("wallflower", "content-type"))
            }
            onwards.request(self.command, self.path, body, kept)
            answer = onwards.getresponse()
            return answer.status, answer.read()
        except OSError:
            return 503, b""
        finally:
            onwards.close()

    do_GET = do_PUT = do_POST = handle_call  # noqa: N815 - the names the base class calls

    def log_message(self, *_: object) -> None:
        """Quiet."""


@contextmanager
def between(port: int, faults: tuple[str, ...]) -> Iterator[Between]:
    server = Between(port, faults)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
