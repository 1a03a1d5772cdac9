"""MariaDB, started from the system's own package in a folder that is deleted afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from ottla.free_ports import free_port
from rivals.one_at_a_time import one_at_a_time

READY_SECONDS = 60.0
PROGRAMS = ("mariadbd", "mariadb-install-db", "my_print_defaults")
PACKAGES = ("mariadb-server-core", "mariadb-client-core")
"""The programs without a service that the system starts."""
PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
USER = """create user if not exists tester@'%' identified by 's3cret';
grant all on *.* to tester@'%' with grant option;
create user if not exists blind@'%' identified by 's3cret';
grant select on *.* to blind@'%';
"""
SETTINGS = (
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--innodb-flush-log-at-trx-commit=2",  # a process that is killed loses nothing by it
    "--innodb-buffer-pool-size=32M",
    "--innodb-log-file-size=16M",
)


def program(name: str) -> str:
    """Return the path of a program. Installs the packages if the user is root; otherwise the error names the package."""
    if os.geteuid() == 0 and shutil.which("apt-get") and not all(shutil.which(one, path=PATH) for one in PROGRAMS):
        with one_at_a_time(Path("/tmp/ottla-mariadb")):
            command = ["apt-get", "install", "-qq", "-y", "--no-install-recommends", *PACKAGES]
            subprocess.run(command, check=False, capture_output=True)
    found = shutil.which(name, path=PATH)
    if found is None:
        raise RuntimeError("there is no MariaDB here, which these tests start: install the package mariadb-server")
    return found


def own_places(folder: Path) -> list[str]:
    """Options. A server that starts deletes the temporary tables of all others that have theirs in the same place."""
    (folder / "tmp").mkdir(exist_ok=True)
    return [f"--datadir={folder / 'data'}", f"--tmpdir={folder / 'tmp'}"]


class Server:
    """A MariaDB that can be killed and started again."""

    settings: tuple[str, ...] = SETTINGS

    def __init__(self, folder: Path) -> None:
        self.folder, self.process = folder, None
        self._program, self._who = program("mariadbd"), ["--user=root"] if os.geteuid() == 0 else []
        self.port = free_port()
        self.url = f"mysql://tester:s3cret@127.0.0.1:{self.port}/mysql"
        (folder / "user.sql").write_text(USER, encoding="utf-8")
        command = [program("mariadb-install-db"), "--no-defaults", *self._who, *own_places(folder)]
        result = subprocess.run(
            [*command, "--skip-test-db", "--auth-root-authentication-method=normal"],
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            raise RuntimeError(f"mariadb-install-db failed: {result.stdout}{result.stderr}")

    process: subprocess.Popen[bytes] | None

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            command = [self._program, "--no-defaults", *self._who, *self.settings, *own_places(self.folder)]
            places = [f"--socket={self.folder / 'socket'}", f"--pid-file={self.folder / 'pid'}", f"--port={self.port}"]
            first = f"--init-file={self.folder / 'user.sql'}"
            process: subprocess.Popen[bytes] = subprocess.Popen([*command, *places, first], stdout=log, stderr=log)
        self.process = process
        deadline = time.monotonic() + READY_SECONDS
        while not self._answers():
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(
                    f"{self._program} did not start:\n{(self.folder / 'log').read_text(errors='replace')[-3000:]}"
                )
            time.sleep(0.05)

    def _answers(self) -> bool:
        import pymysql

        try:
            pymysql.connect(host="127.0.0.1", port=self.port, user="tester", password="s3cret").close()
        except pymysql.MySQLError:
            return False
        return True

    def kill(self) -> None:
        """Kill the server without a shutdown, as in a power failure."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)


S = TypeVar("S", bound=Server)


@contextmanager
def mariadb() -> Iterator[Server]:
    """Start a server, and stop it at the end."""
    with running(Server, "mariadb-") as server:
        yield server


@contextmanager
def running(kind: type[S], prefix: str) -> Iterator[S]:
    """Start a server of a kind in a folder, and delete the folder at the end."""
    with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        server = kind(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
