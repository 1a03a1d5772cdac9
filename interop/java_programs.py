"""Make Java start quickly in tests: compile our programs against Kafka's jars once, and keep Kafka's classes in a CDS
archive.

python -m interop.java_programs    builds both if they are missing
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
import tempfile
from pathlib import Path

from ottla.spark.driver.class_archive import read_options, write_options
from rivals import apache_kafka as rival
from rivals.one_at_a_time import one_at_a_time
from tools.class_archive import QUICK

HERE = Path(__file__).parent
SOURCES = (
    HERE / "Tools.java",
    *(
        HERE / "java" / f"{name}.java"
        for name in ("Member", "Numbers", "Processor", "Pushed", "TimedOutTransaction", "Transactor")
    ),
)
ARCHIVE = rival.JARS / "classes.jsa"
"""The archive is stored in the directory of the jars, and Java verifies that it was made from them."""
PATIENCE = 120.0


def program(name: str, *words: str) -> list[str]:
    """Return the command that runs a compiled program. From source, Java would need 0.8 s of processor time more."""
    return rival.java(name, *words, classes=str(compiled()))


@functools.cache
def compiled() -> Path:
    """Return the folder with the classes of our programs."""
    rival.fetch()
    text = b"".join(source.read_bytes() for source in SOURCES)
    folder = rival.ROOT / "out" / f"java-{hashlib.sha256(text).hexdigest()[:16]}"
    with one_at_a_time(folder):
        if not folder.exists():
            part = folder.with_suffix(".part")
            jars = ":".join(map(str, rival.JARS.glob("*.jar")))
            compiler = ["java", *rival.options, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", jars]
            rival.run([*compiler, "-d", str(part), *map(str, SOURCES)])
            part.rename(folder)
    return folder


def quick_options() -> tuple[str, ...]:
    """Return the options of every Java process in a test: limit the JIT compiler, and use the class archive if it
    exists.
    """
    return (QUICK, *read_options(ARCHIVE).split()) if ARCHIVE.exists() else (QUICK,)


def ensure_archive() -> None:
    """Write the class archive when a Kafka broker exits.

    Kafka's tools use most of the same classes, and start in half the time.
    """
    rival.fetch()
    with one_at_a_time(ARCHIVE):
        if not ARCHIVE.exists():
            write_archive(ARCHIVE.with_suffix(".part"))


def write_archive(part: Path) -> None:
    rival.options = (QUICK,)
    with tempfile.TemporaryDirectory(prefix="apache-kafka-") as folder:
        plan = rival.Plan(Path(folder), Path(folder, "logs"), {}, fixed_voters=False)
        ports = rival.new_ports(())
        plan.format(ports, ())
        rival.options = (QUICK, *write_options(part).split())
        process, _ = plan.start_ready(ports)
        process.terminate()
        try:
            process.wait(PATIENCE)  # the archive is written for several seconds
        except subprocess.TimeoutExpired:
            rival.stop(process)
        else:
            if part.exists():
                part.rename(ARCHIVE)


if __name__ == "__main__":
    compiled()
    ensure_archive()
