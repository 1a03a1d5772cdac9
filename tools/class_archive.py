"""An archive of Spark's classes for tests and the demo, in `out/`: see `ottla.spark.driver.class_archive`, which has those of users.

python -m tools.class_archive            makes the one of this Java and this Spark, if there is none, and prints Java's options for it
python -m tools.class_archive FILE       writes one
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ottla.spark.driver.class_archive import OPTIONS, archive_path, read_options

FOLDER = Path(__file__).parents[1] / "out"
QUICK = "-XX:TieredStopAtLevel=1"
"""Drivers that live for seconds compile no more than pays in them."""
DEADLINE = 600.0


def place() -> Path:
    """Return the path of the archive for this Java and this Spark."""
    return FOLDER / archive_path(os.environ).name


def class_archive() -> Path:
    """The archive; made first, in some twenty seconds, where there is none."""
    archive = place()
    if not archive.exists():
        command = [sys.executable, "-m", "tools.class_archive", str(archive)]
        subprocess.run(command, check=True, timeout=DEADLINE, capture_output=True)
    return archive


def driver_options(archive: Path) -> str:
    """Return the Java options that use the archive."""
    return f"{read_options(archive)} {QUICK}"


def write(archive: Path) -> None:
    """Run small pipelines, so that their classes are loaded, and wait until Java has written them down."""
    from ottla.pipelines.archived_run import write_archive

    os.environ.pop(OPTIONS, None)
    write_archive(archive, QUICK)


if __name__ == "__main__":
    if sys.argv[1:]:
        write(Path(sys.argv[1]))
    else:
        print(driver_options(class_archive()))
