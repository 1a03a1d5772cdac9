"""Java's classes of Spark as they are once loaded, kept in a file: a driver that has them starts in half the time.

What a driver does first, for seconds, is to unpack and check thousands of classes, the same ones each time. Java writes them to an
archive as a process ends that was told to, and takes them from there where Java, jars and class path are the same; where they are
not it starts as ever, and says nothing. `ottla pipeline run` has one made beside it, once, at the lowest priority.

The rule: an archive costs or saves time and nothing else. Whoever names one of his own, or `-Xshare`, in SPARK_SUBMIT_OPTS has his.
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
"""The variable with options for the Java of a driver."""
OWN = ("SharedArchiveFile", "ArchiveClassesAtExit", "-Xshare")
"""What is in there where somebody has decided for himself."""
QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
MAKER = "ottla.pipelines.archived_run"
MAKING = "making-"
"""How the name of a folder begins in which one is made."""
DAY = 86400.0
UNUSED = 30 * DAY
"""Seconds after which an archive that nobody has used is deleted; each has some 150 MB."""


def archive_path(environment: Mapping[str, str]) -> Path:
    """Where the archive for this Java and these jars lies, or will; JavaError without a Java."""
    java = Path(find_java(environment)).resolve()
    parts = [java, *java.parent.parent.glob("lib/server/libjvm.so"), *sorted(jars(environment).glob("*.jar"))]
    known = "\n".join(f"{part} {(kept := part.stat()).st_size} {kept.st_mtime_ns}" for part in parts)
    return cache_folder(environment) / f"spark-classes-{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"


def jars(environment: Mapping[str, str]) -> Path:
    """The folder of those that Spark brings."""
    import pyspark

    return Path(environment.get("SPARK_HOME") or Path(pyspark.__file__).parent, "jars")


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Where a user's programs keep what can be made again."""
    told = environment.get("XDG_CACHE_HOME")
    return Path(told if told and os.path.isabs(told) else Path.home() / ".cache", "ottla")


def reading(archive: Path) -> str:
    """What to tell Java so that it takes classes from there."""
    return f"-XX:SharedArchiveFile={archive} {QUIET}"


def writing(archive: Path) -> str:
    """What to tell Java so that it writes its classes there as it ends."""
    return f"-XX:ArchiveClassesAtExit={archive} {QUIET}"


@contextmanager
def archived_classes(environment: MutableMapping[str, str] | None = None) -> Iterator[None]:
    """Have the Java that is started in here take its classes from the archive, if there is one."""
    variables = os.environ if environment is None else environment
    before = variables.get(OPTIONS)
    archive = usable(variables)
    if archive is None:
        yield
        return
    variables[OPTIONS] = f"{before or ''} {reading(archive)}".strip()
    try:
        yield
    finally:
        if before is None:
            del variables[OPTIONS]
        else:
            variables[OPTIONS] = before


def usable(environment: Mapping[str, str]) -> Path | None:
    """The archive, if it is there, is this user's and nobody else may write it."""
    with suppress(OSError, ValueError, JavaError, RuntimeError):
        archive = wanted(environment)
        if archive is not None and is_whole(archive) and is_own(archive.stat()) and is_own(archive.parent.stat()):
            with suppress(OSError):  # a cache that cannot be written to may have one as well
                os.utime(archive)
            return archive
    return None


def wanted(environment: Mapping[str, str]) -> Path | None:
    """Where the archive is to be; None where the user has decided otherwise, or its path is none that Java's options can have."""
    if os.name != "posix" or any(sign in environment.get(OPTIONS, "") for sign in OWN):
        return None
    archive = archive_path(environment)
    return None if any(letter.isspace() for letter in str(archive)) else archive


def is_own(kept: os.stat_result) -> bool:
    """Whether no other user can have put something there: what is in an archive is run."""
    return kept.st_uid == os.geteuid() and not kept.st_mode & 0o022


def is_whole(archive: Path) -> bool:
    """Whether it is as long as it was made: Java notices what is short of its head, and dies of what is short further on."""
    return archive.stat().st_size == int(size_of(archive).read_text())


def is_made(archive: Path) -> bool:
    """Whether there is one, and it is whole."""
    with suppress(OSError, ValueError):
        return is_whole(archive)
    return False


def size_of(archive: Path) -> Path:
    """The file that says how long it is."""
    return archive.with_suffix(".size")


def have_archive_made(environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes] | None:
    """Have another process make the archive where there is none that is whole; it takes what processor time nobody else wants, and may outlive this one."""
    variables = os.environ if environment is None else environment
    with suppress(OSError, JavaError, RuntimeError):
        archive = wanted(variables)
        if archive is None or is_made(archive) or not begin(archive):
            return None
        return subprocess.Popen(
            [sys.executable, "-m", MAKER, str(archive)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is not meant for it
            cwd=archive.parent,  # Python would take modules from the user's folder
            env=dict(variables),
        )
    return None


def begin(archive: Path) -> bool:
    """Whether nobody has tried within a day, in a folder where it could be used; leaves a sign that somebody does."""
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
        clear_up(archive.parent)
        return True
    return False


def clear_up(folder: Path) -> None:
    """Take away what those left behind who were killed while they made one."""
    for left in folder.glob(f"{MAKING}*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > DAY:
                shutil.rmtree(left)


def publish(made: Path, archive: Path) -> None:
    """Put a whole archive where it is looked for, and take away those that nobody uses any more."""
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
