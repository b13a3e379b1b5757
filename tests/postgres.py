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


class Unavailable(Exception):
    """No PostgreSQL here, and none could be installed."""


@dataclass(frozen=True)
class Server:
    port: int

    def url(self, password: str = PASSWORD) -> str:
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/postgres"

    def fresh(self) -> str:
        """The URL of the database, emptied: much quicker than a new one."""
        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute("DROP SCHEMA public CASCADE")
            db.execute("CREATE SCHEMA public")
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
        options = ["-U", USER, "-A", "scram-sha-256", f"--pwfile={secret}", "-E", "UTF8", "--locale=C", "--no-sync"]
        _run(programs / "initdb", "-D", data, *options)
        port = _free_port()
        settings = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        _run(programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", settings, "start")
        try:
            yield Server(port)
        finally:
            _run(programs / "pg_ctl", "-D", data, "-w", "-m", "immediate", "stop")
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
