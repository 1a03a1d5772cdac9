"""A MySQL server for tests that use MariaDB otherwise; the environment names its `mysqld`.

Stable Debian has no package of it. The packages of sid run in the folder to which they are unpacked, with their own
libraries: OTTLA_MYSQLD names a program that starts such a `mysqld` with its arguments.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ottla.free_ports import free_port
from rivals import mariadb

MYSQLD = "OTTLA_MYSQLD"
SETTINGS = (
    "--bind-address=127.0.0.1",
    "--skip-name-resolve",
    "--skip-log-bin",
    "--mysqlx=OFF",
    "--secure-file-priv=",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-buffer-pool-size=32M",
)


class Server(mariadb.Server):
    """A MySQL that can be killed and started again."""

    settings = SETTINGS

    def __init__(self, folder: Path) -> None:
        self.folder, self.process = folder, None
        self._program, self._who = os.environ[MYSQLD], ["--user=root"] if os.geteuid() == 0 else []
        self.port = free_port()
        self.url = f"mysql://tester:s3cret@127.0.0.1:{self.port}/mysql"
        (folder / "user.sql").write_text(mariadb.USER, encoding="utf-8")
        command = [self._program, "--no-defaults", *self._who, "--initialize-insecure", *mariadb.own_places(folder)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RuntimeError(f"mysqld --initialize-insecure failed: {result.stdout}{result.stderr}")


@contextmanager
def mysql() -> Iterator[Server]:
    """Run a server; it is stopped at the end."""
    with mariadb.running(Server, "mysql-") as server:
        yield server
