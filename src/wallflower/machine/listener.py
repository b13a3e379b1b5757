"""A web server on a socket of its own, for the service and for the parties of a sensor stream."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from threading import Thread

import uvicorn


class Listener(uvicorn.Server):
    """Ends on a signal without passing it on: its caller can close its resources, and a stop is no failure."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def bind_socket(host: str, port: int) -> socket.socket:
    """A socket at this address; port 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio looks for this protocol, and only then sends a short answer at once, not 40 ms later
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError:
        made.close()
        raise
    return made


def end_with_parent() -> None:
    """End this process well when the one that started it is gone, however it went: nobody would replace or stop it, and
    the port that both listen on would stay taken."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: int) -> None:
    wait([sentinel])
    os.kill(os.getpid(), signal.SIGTERM)
