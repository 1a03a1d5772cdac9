"""The oldest Java client that Apache Kafka 4 supports. Many programs still use it.

It uses the oldest version of nearly each API (KIP-896). `Oldest.java` is compiled against its own jar, and cannot be
compiled against a newer one.
"""

from __future__ import annotations

from pathlib import Path

from rivals import apache_kafka as rival
from rivals.one_at_a_time import one_at_a_time
from tools.class_archive import QUICK

HERE = Path(__file__).parent / "java" / "oldest"
JARS = rival.ROOT / ".cache" / "oldest-java-client"


def fetch() -> None:
    """Download the jars unless they exist."""
    with one_at_a_time(JARS):
        if not any(JARS.glob("kafka-clients-*.jar")):
            rival.bring(HERE / "pom.xml", JARS)


def run_program(*words: str) -> list[str]:
    """Return the output lines of the program. Raises RuntimeError with all lines if it fails."""
    fetch()
    source = str(HERE / "Oldest.java")  # Java compiles it, and prints its warnings to standard error
    return rival.run(["java", QUICK, "-cp", f"{JARS}/*", source, *words]).splitlines()
