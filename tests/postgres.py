"""A PostgreSQL server of our own, for as long as the tests run."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

USER, PASSWORD = "steward", "hunter2-sesame"
ROOT = os.geteuid() == 0
SEGMENT = 2**20  # bytes of a file of its log


class Unavailable(Exception):
    """No PostgreSQL here, and none could be installed."""


@dataclass(frozen=True)
class Server:
    port: int
    data: Path

    def stop(self) -> None:
        """As if the power failed: whoever is connected is cut off, and what was committed is found again."""
        _run(_programs() / "pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop")

    def start(self) -> None:
        settings = f"-p {self.port} -k {self.data.parent} -c listen_addresses=127.0.0.1 -c fsync=off"
        _run(_programs() / "pg_ctl", "-D", self.data, "-w", "-l", self.data.parent / "log", "-o", settings, "start")

    @contextmanager
    def full(self) -> Iterator[None]:
        """No file grows beyond that of a segment of its log, in any connection that begins meanwhile."""
        process = (self.data / "postmaster.pid").read_text().split()[0]
        _run(Path("prlimit"), "--pid", process, f"--fsize={SEGMENT}:")
        try:
            yield
        finally:
            _run(Path("prlimit"), "--pid", process, "--fsize=unlimited:")

    def url(self, password: str = PASSWORD) -> str:
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/postgres"

    def fresh(self) -> str:
        """The URL of the database, emptied: much quicker than a new one."""
        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute("DROP SCHEMA public CASCADE")
            db.execute("CREATE SCHEMA public")
            db.execute("DROP SCHEMA IF EXISTS wallflower_fleets CASCADE")
        return self.url()


@contextmanager
def running() -> Iterator[Server]:
    """Start a server, hand it out, stop it and leave nothing behind."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="wallflower-pg-"))
    try:
        secret = folder / "password"
        secret.write_text(PASSWORD)
        if ROOT:
            shutil.chown(folder, "postgres")
            shutil.chown(secret, "postgres")
        data = folder / "data"
        # a ledger connects for every transaction, and the default costs the client five milliseconds each time
        options = ["-U", USER, "-A", "md5", f"--pwfile={secret}", "-E", "UTF8", "--locale=C", "--no-sync"]
        _run(programs / "initdb", "-D", data, *options, f"--wal-segsize={SEGMENT // 2**20}")
        made = Server(_free_port(), data)
        made.start()
        try:
            yield made
        finally:
            made.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    found = _find()
    if found is None and ROOT and shutil.which("apt-get"):
        for command in (["apt-get", "update"], ["apt-get", "install", "-y", "postgresql"]):
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        found = _find()
    if found is None:
        raise Unavailable("PostgreSQL is not installed and could not be; install the package `postgresql`.")
    return found


def _find() -> Path | None:
    on_path = shutil.which("initdb")
    folders = [Path(on_path).resolve().parent] if on_path else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "pg_ctl").exists()), None)


def _run(program: Path, *arguments: object) -> None:
    command = ["runuser", "-u", "postgres", "--"] if ROOT else []
    command += [str(program), *map(str, arguments)]
    done = subprocess.run(command, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"{program.name} failed: {done.stderr.strip()}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
