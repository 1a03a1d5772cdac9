"""Keeps Java's loaded classes of Spark in an archive (class data sharing), which halves the start time of a driver.

A driver spends its first seconds unpacking and verifying thousands of classes, the same each time. Java can write them
to an archive when a process ends (`-XX:ArchiveClassesAtExit`), and reads them from it if Java, jars and class path are
the same; otherwise it starts as usual, without a message. `ottla pipeline run` has the archive made in the background,
once, at the lowest priority.

An archive only affects time. A user's own archive or `-Xshare` in SPARK_SUBMIT_OPTS takes precedence.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ottla.spark.driver.java import JavaError, find_java

OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable with options for the driver's JVM."""
OWN = ("SharedArchiveFile", "ArchiveClassesAtExit", "-Xshare")
"""The options by which a user has chosen an archive."""
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
MAKER = "ottla.pipelines.archived_run"
MAKING = "making-"
"""The prefix of the name of a folder in which an archive is being made."""
DAY = 86400.0
UNUSED = 30 * DAY
"""Seconds after which an unused archive is deleted; each has about 150 MB."""


def archive_path(environment: Mapping[str, str]) -> Path:
    """Return the path of the archive for this Java and these jars; JavaError without a Java."""
    java = Path(find_java(environment)).resolve()
    parts = [java, *java.parent.parent.glob("lib/server/libjvm.so"), *sorted(jars_folder(environment).glob("*.jar"))]
    known = "\n".join(f"{part} {(kept := part.stat()).st_size} {kept.st_mtime_ns}" for part in parts)
    return cache_folder(environment) / f"spark-classes-{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"


def jars_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder of Spark's jars."""
    import pyspark

    return Path(environment.get("SPARK_HOME") or Path(pyspark.__file__).parent, "jars")


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's cache folder."""
    configured = environment.get("XDG_CACHE_HOME")
    return Path(configured if configured and os.path.isabs(configured) else Path.home() / ".cache", "ottla")


def read_options(archive: Path) -> str:
    """Return the JVM options to read classes from an archive."""
    return f"-XX:SharedArchiveFile={archive} {QUIET}"


def write_options(archive: Path) -> str:
    """Return the JVM options to write classes to an archive when the JVM ends."""
    return f"-XX:ArchiveClassesAtExit={archive} {QUIET}"


@contextmanager
def archived_classes(environment: MutableMapping[str, str] | None = None) -> Iterator[None]:
    """Have a JVM that is started in the block read its classes from the archive, if there is one."""
    variables = os.environ if environment is None else environment
    before = variables.get(OPTIONS)
    archive = find_archive(variables)
    if archive is None:
        yield
        return
    variables[OPTIONS] = f"{before or ''} {read_options(archive)}".strip()
    try:
        yield
    finally:
        if before is None:
            del variables[OPTIONS]
        else:
            variables[OPTIONS] = before


def find_archive(environment: Mapping[str, str]) -> Path | None:
    """Return the archive if it exists, belongs to this user, and other users cannot write it."""
    with suppress(OSError, ValueError, JavaError, RuntimeError):
        archive = archive_target(environment)
        if archive is not None and is_whole(archive) and is_own(archive.stat()) and is_own(archive.parent.stat()):
            with suppress(OSError):  # the cache may be read-only
                os.utime(archive)
            return archive
    return None


def archive_target(environment: Mapping[str, str]) -> Path | None:
    """Return the path of the archive; None if the user has chosen another, or the path cannot be part of JVM options."""
    if os.name != "posix" or any(sign in environment.get(OPTIONS, "") for sign in OWN):
        return None
    archive = archive_path(environment)
    return None if any(letter.isspace() for letter in str(archive)) else archive


def is_own(kept: os.stat_result) -> bool:
    """Return True if no other user can have modified the file: the content of an archive is executed."""
    return kept.st_uid == os.geteuid() and not kept.st_mode & 0o022


def is_whole(archive: Path) -> bool:
    """Return True if the archive has its original size.

    The JVM detects a truncated header, and crashes if a later part is missing.
    """
    return archive.stat().st_size == int(size_of(archive).read_text())


def is_made(archive: Path) -> bool:
    """Return True if there is a complete archive."""
    with suppress(OSError, ValueError):
        return is_whole(archive)
    return False


def size_of(archive: Path) -> Path:
    """Return the file with the archive's size."""
    return archive.with_suffix(".size")


def start_archive_build(environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes] | None:
    """Start a process that makes the archive, unless a complete one exists.

    It runs at the lowest priority, and may outlive this process.
    """
    variables = os.environ if environment is None else environment
    with suppress(OSError, JavaError, RuntimeError):
        archive = archive_target(variables)
        if archive is None or is_made(archive) or not claim_build(archive):
            return None
        return subprocess.Popen(
            [sys.executable, "-m", MAKER, str(archive)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # not interrupted by Ctrl-C
            cwd=archive.parent,  # Python would import modules from the user's folder
            env=dict(variables),
        )
    return None


def claim_build(archive: Path) -> bool:
    """Return True, and leave a marker file, if no process has tried within a day in a folder where the archive could be used."""
    archive.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not is_own(archive.parent.stat()):
        return False
    sign = archive.with_suffix(".tried")
    with suppress(FileNotFoundError):
        if time.time() - sign.stat().st_mtime < DAY:
            return False
        sign.unlink()
    with suppress(FileExistsError):
        sign.touch(exist_ok=False)
        delete_leftovers(archive.parent)
        return True
    return False


def delete_leftovers(folder: Path) -> None:
    """Delete the leftovers of killed processes."""
    for left in folder.glob(f"{MAKING}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > DAY:
                shutil.rmtree(left)


def publish_archive(made: Path, archive: Path) -> None:
    """Move a complete archive to its path, and delete archives that are not used any more."""
    made.chmod(0o600)
    with made.open("rb") as file:
        os.fsync(file.fileno())
    size_of(archive).write_text(str(made.stat().st_size))
    made.replace(archive)
    archive.with_suffix(".tried").unlink(missing_ok=True)
    for other in archive.parent.glob("spark-classes-*.jsa"):
        with suppress(OSError):
            if time.time() - other.stat().st_mtime > UNUSED:
                other.unlink()
                size_of(other).unlink()
