"""A mirror that ends itself by SIGKILL at its n-th step: `killed_mirror.py SOURCE TARGET N TOPIC PREFIX`."""

from __future__ import annotations

import sys

from ottla.mirror import Mirror, MirrorSettings, Selection
from tests.killed_process import kill_at, run_program


def main(source: str, target: str, steps: int, topic: str, prefix: str) -> None:
    settings = MirrorSettings(
        source={"bootstrap.servers": source},
        target={"bootstrap.servers": target},
        selection=Selection((topic,), prefix=prefix),
        once=True,
        max_records=40,
    )
    Mirror(settings, at=kill_at(steps)).run()


def run_killed(source: str, target: str, steps: int, topic: str, prefix: str = "") -> int:
    """Run such a process and return its status; without a step it is not killed."""
    return run_program(__name__, source, target, steps, topic, prefix)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
