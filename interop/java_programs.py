"""What makes Java quick in tests: our programs on Kafka's jars compiled once, and Kafka's classes kept in an archive.

python -m interop.java_programs    has both made where they are not
"""

from __future__ import annotations

import functools
import hashlib
import subprocess
import tempfile
from pathlib import Path

from ottla.spark.driver.class_archive import reading, writing
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
"""Beside the jars: with them it goes, and Java looks whether it is theirs."""
PATIENCE = 120.0


def program(name: str, *words: str) -> list[str]:
    """The command that runs one of ours. From its source Java takes 0.8 s of a processor longer."""
    return rival.java(name, *words, classes=str(compiled()))


@functools.cache
def compiled() -> Path:
    """The folder with the classes of our programs."""
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
    """What every Java of a test is told: compile no more than pays, and take classes from the archive if there is one."""
    return (QUICK, *reading(ARCHIVE).split()) if ARCHIVE.exists() else (QUICK,)


def ensure_archive() -> None:
    """Have a Kafka write down its classes as it ends. Its tools need most of them, too, and then half the time to start."""
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
        rival.options = (QUICK, *writing(part).split())
        process, _ = plan.launched(ports)
        process.terminate()
        try:
            process.wait(PATIENCE)  # it writes for seconds
        except subprocess.TimeoutExpired:
            rival.stop(process)
        else:
            if part.exists():
                part.rename(ARCHIVE)


if __name__ == "__main__":
    compiled()
    ensure_archive()
