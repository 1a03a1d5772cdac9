"""PostgreSQL, started from the system's own package in a folder that is deleted afterwards.

It does not run as root. If the tests run as root, it is started as the user `postgres` or `nobody`.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil

from ottla.free_ports import free_port
from rivals.one_at_a_time import one_at_a_time

READY_SECONDS = 60.0
SETTINGS = {
    "wal_level": "logical",
    "max_replication_slots": "50",
    "max_wal_senders": "50",
    "max_prepared_transactions": "10",
    "fsync": "off",  # a process that is killed loses nothing by it
    "listen_addresses": "127.0.0.1",
}


def binaries() -> Path:
    """Return the folder of initdb and postgres. Installs the package if the user is root; otherwise the error names it."""
    found = installed()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with one_at_a_time(Path("/tmp/ottla-postgresql")):
            if installed() is None:
                subprocess.run(["apt-get", "install", "-qq", "-y", "postgresql"], check=False, capture_output=True)
        found = installed()
    if found is None:
        raise RuntimeError("there is no PostgreSQL here, which these tests start: install the package postgresql")
    return found


def installed() -> Path | None:
    """Return the newest installed version."""
    there = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    if there:
        return there[-1].parent
    anywhere = shutil.which("postgres")
    return Path(anywhere).resolve().parent if anywhere and shutil.which("initdb") else None


def user() -> dict[str, Any]:
    """Return the user of the server, as arguments of subprocess."""
    if os.geteuid() != 0:
        return {}
    known = {one.pw_name: one for one in pwd.getpwall()}
    found = known.get("postgres") or known["nobody"]
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}


class Server:
    """A PostgreSQL that can be killed and started again."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder, self.settings = folder, {**SETTINGS, **settings}
        self.port = free_port()
        self.url = f"postgresql://tester:s3cret@127.0.0.1:{self.port}/postgres"
        self._who, self._binaries = user(), binaries()
        self.process: subprocess.Popen[bytes] | None = None
        if self._who:
            os.chown(folder, self._who["user"], self._who["group"])
        secret = folder / "password"
        secret.write_text("s3cret")
        secret.chmod(0o644)
        self._run(
            "initdb", "-D", str(folder / "data"), "-U", "tester", "-A", "scram-sha-256", f"--pwfile={secret}", "-N"
        )

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            given = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
            command = [str(self._binaries / "postgres"), "-D", str(self.folder / "data"), "-p", str(self.port), *given]
            process: subprocess.Popen[bytes] = subprocess.Popen(
                [*command, "-k", str(self.folder)], stdout=log, stderr=log, cwd=self.folder, **self._who
            )
        self.process = process
        deadline = time.monotonic() + READY_SECONDS
        ready = [str(self._binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        while subprocess.run(ready, check=False).returncode:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(
                    f"PostgreSQL did not start:\n{(self.folder / 'log').read_text(errors='replace')[-3000:]}"
                )
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill all processes, as in a power failure. A server cannot start while one of them holds the shared memory."""
        assert self.process is not None
        others = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        self.process.wait()
        for each in others:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        psutil.wait_procs(others)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # which does not wait for clients
            self.process.wait(30)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, check=False, **self._who)
        if result.returncode:
            raise RuntimeError(f"{program} failed: {result.stdout}{result.stderr}")


@contextmanager
def postgresql(**settings: str) -> Iterator[Server]:
    """Run a server; it is stopped at the end."""
    with TemporaryDirectory(prefix="postgresql-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        server = Server(Path(folder), settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
