"""A backup or restore that ends itself by SIGKILL at its n-th report: `killed.py backup|restore ADDRESS DIR N TOPIC`."""

from __future__ import annotations

import sys
from pathlib import Path

from ottla.backup import Backup, BackupSettings, Restore, RestoreSettings, Selection
from tests.killed_process import kill_at, run_program


def main(what: str, address: str, folder: str, steps: int, topic: str) -> None:
    show = kill_at(steps)
    client = (
        {"bootstrap.servers": address, "fetch.max.bytes": 1000} if what == "backup" else {"bootstrap.servers": address}
    )
    place, selection = Path(folder), Selection((topic,))
    if what == "backup":
        Backup(BackupSettings(client=client, folder=place, selection=selection, save_seconds=0), show=show).run()
    else:
        Restore(RestoreSettings(client=client, folder=place, selection=selection), show=show).run()


def run_killed(what: str, address: str, folder: Path, steps: int, topic: str) -> int:
    """Run such a process and return its status; with 0 steps it is not killed."""
    return run_program(__name__, what, address, folder, steps, topic)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
