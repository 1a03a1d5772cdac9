"""A mirror that ends itself by SIGKILL at its n-th step: `killed_mirror.py SOURCE TARGET N TOPIC PREFIX`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from ottla.mirror import Mirror, MirrorSettings, Selection


def main(source: str, target: str, steps: int, topic: str, prefix: str) -> None:
    left = steps

    def at(step: str) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    settings = MirrorSettings(
        source={"bootstrap.servers": source},
        target={"bootstrap.servers": target},
        selection=Selection((topic,), prefix=prefix),
        once=True,
        max_records=40,
    )
    Mirror(settings, at=at).run()


def run_killed(source: str, target: str, steps: int, topic: str, prefix: str = "") -> int:
    """Run such a process and return its status; without a step it is not killed."""
    words = (source, target, str(steps), topic, prefix)
    return subprocess.run([sys.executable, __file__, *words], timeout=120).returncode


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
