"""How long others wait while a service is flooded, and what hostile heads cost it in memory.

`python benchmarks/floods.py --ledger both` starts a service of one worker here. One analyst sends 60 trade-off curves
and 12 bodies of 720 kB to score at once, and 300 connections of strangers call pages with a forged cookie. Meanwhile
`/healthz` and the budget call of another analyst are timed. Then four connections send 300 MB of headers each. Exits
with 1 if a limit is missed; every loop is bounded, and everything stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import re
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from soak import place
from soak_service import ANALYSTS, STREAM, WIDE, Site, call, site

TRADEOFFS, SCORE_BODIES, STRANGERS = 60, 12, 300
STRANGER_CALLS = 10  # of each connection
RECORDS = 60_000  # in a body of 720 kB
HEADER_CONNECTIONS, HEADER_BYTES = 4, 300_000_000
LIMITS = {"healthz": 1.0, "budget call": 2.0, "memory": 10e6}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ledger", choices=("sqlite", "postgresql", "both"), default="both")
    kinds = ("sqlite", "postgresql") if (stated := parser.parse_args(arguments).ledger) == "both" else (stated,)
    worst = 0
    for kind in kinds:
        with (
            tempfile.TemporaryDirectory(prefix="wallflower-floods-") as folder,
            place(kind, Path(folder)) as (where, _),
            site(Path(folder), where, workers=1, machines=1, slowest=30.0) as built,
        ):
            figures = measure(built)
        load = Path("/proc/loadavg").read_text().split()[0]
        for name, value in figures.items():
            limit = LIMITS.get(name)
            verdict = "" if limit is None else f"limit {limit:g}: {'met' if value <= limit else 'MISSED'}"
            print(f"{kind:<11} {name:<28} {value:<12.3g} {verdict}", flush=True)
            worst |= limit is not None and value > limit
        print(f"{kind:<11} load average {load}", flush=True)
    return int(worst)


def measure(built: Site) -> dict[str, float]:
    url, flooder, other = built.machines[0].url, built.tokens[ANALYSTS[0]], built.tokens[ANALYSTS[1]]
    body = {"epsilon": "1", "force": True}
    release = call(url, "POST", f"/v1/datasets/{WIDE}/ask/detector", token=flooder, body=body).json["ledger_id"]
    records = json.dumps({"records": [[40, 3000]] * RECORDS}).encode()
    cookie, proof = sign_in(url, flooder)
    call(url, "GET", f"/v1/datasets/{WIDE}/budget", token=other)

    def draw_curve(number: int) -> None:
        form = {"proof": proof, "threshold": str(2 + number / 1000), "low": "-5", "high": "5", "variance": "1"}
        content = urlencode(form | {"epsilon": "1", "tradeoff": "1"}).encode()
        more = {"cookie": f"wallflower={cookie}", "content_type": "application/x-www-form-urlencoded"}
        call(url, "POST", f"/ui/datasets/{STREAM}/plan/watch", token=None, body=content, **more)

    def score(_: int) -> None:
        call(url, "POST", f"/v1/releases/{release}/scores", token=flooder, body=records)

    began = time.monotonic()
    strangers = multiprocessing.get_context("spawn").Process(target=run_strangers, args=(url,))
    strangers.start()
    flood = [threading.Thread(target=quietly(draw_curve), args=(at,)) for at in range(TRADEOFFS)]
    flood += [threading.Thread(target=quietly(score), args=(at,)) for at in range(SCORE_BODIES)]
    for thread in flood:
        thread.start()
    times: dict[str, list[float]] = {"healthz": [], "budget call": []}
    probes = {"healthz": ("/healthz", None), "budget call": (f"/v1/datasets/{WIDE}/budget", other)}
    while strangers.is_alive() or any(thread.is_alive() for thread in flood):
        for name, (path, token) in probes.items():
            at = time.monotonic()
            assert call(url, "GET", path, token=token).status == 200, name
            times[name].append(time.monotonic() - at)
        time.sleep(0.1)
    for thread in flood:
        thread.join()
    strangers.join()
    figures = {name: max(values) for name, values in times.items()}
    figures |= {"probes": len(times["healthz"]), "flood seconds": time.monotonic() - began}
    return figures | {"memory": send_headers(built, url)}


def sign_in(url: str, token: str) -> tuple[str, str]:
    """Sign in on the pages; return the cookie and the proof that forms need."""
    page = call(url, "GET", "/ui/sign-in", token=None)
    cookie = page.headers["set-cookie"].partition("=")[2].partition(";")[0]
    form = {"token": token, "proof": proof_in(page.content)}
    more = {"cookie": f"wallflower={cookie}", "content_type": "application/x-www-form-urlencoded"}
    answer = call(url, "POST", "/ui/sign-in", token=None, body=urlencode(form).encode(), **more)
    cookie = answer.headers["set-cookie"].partition("=")[2].partition(";")[0]
    return cookie, proof_in(call(url, "GET", "/ui/", token=None, cookie=f"wallflower={cookie}").content)


def proof_in(page: bytes) -> str:
    found = re.search(rb'name="proof" value="([0-9a-f]+)"', page)
    assert found is not None, page[:200]
    return found[1].decode()


def quietly(act: Callable[[int], None]) -> Callable[[int], None]:
    """The same without the errors of connections that are closed."""

    def run(number: int) -> None:
        with suppress(OSError, http.client.HTTPException):
            act(number)

    return run


def run_strangers(url: str) -> None:
    """Call a page from many connections at once, each a few times, with a cookie that is not ours."""
    host, _, port = url.removeprefix("http://").partition(":")
    request = f"GET /ui/datasets/{WIDE} HTTP/1.1\r\nhost: localhost\r\ncookie: wallflower=deadbeef\r\n\r\n".encode()

    async def call_often() -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection(host, int(port))
            for _ in range(STRANGER_CALLS):
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
            writer.close()

    async def call_all() -> None:
        await asyncio.gather(*(call_often() for _ in range(STRANGERS)))

    asyncio.run(call_all())


def send_headers(built: Site, url: str) -> float:
    """Send endless headers on a few connections; return by how many bytes the resident memory rose at its highest."""
    host, _, port = url.removeprefix("http://").partition(":")
    before, highest, is_over = resident(built), 0, threading.Event()

    def watch() -> None:
        nonlocal highest
        while not is_over.wait(0.02):
            highest = max(highest, resident(built))

    def send() -> None:
        line = b"X: " + b"a" * 60_000 + b"\r\n"
        with suppress(OSError), socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
            for _ in range(HEADER_BYTES // len(line)):
                connection.sendall(line)

    watcher = threading.Thread(target=watch)
    watcher.start()
    senders = [threading.Thread(target=send) for _ in range(HEADER_CONNECTIONS)]
    for thread in senders:
        thread.start()
    for thread in senders:
        thread.join()
    is_over.set()
    watcher.join()
    return float(max(0, highest - before))


def resident(built: Site) -> int:
    """Resident memory of the processes that answer, in bytes."""
    pages = (Path(f"/proc/{process}/statm").read_text().split()[1] for process in built.machines[0].processes())
    return sum(map(int, pages)) * 4096


if __name__ == "__main__":
    sys.exit(main())
