"""The oldest client of Java that Apache Kafka 4 serves, which many a program has still; compiled once against its own jar.

Speaks the oldest version of nearly each API (KIP-896). `Oldest.java` cannot be compiled against a newer one.
"""

from __future__ import annotations

from pathlib import Path

from rivals import apache_kafka as rival
from rivals.one_at_a_time import one_at_a_time
from tools.class_archive import QUICK

HERE = Path(__file__).parent / "java" / "oldest"
JARS = rival.ROOT / ".cache" / "oldest-java-client"


def fetch() -> None:
    """Bring the jars, unless they are there."""
    with one_at_a_time(JARS):
        if not any(JARS.glob("kafka-clients-*.jar")):
            rival.bring(HERE / "pom.xml", JARS)


def tell(*words: str) -> list[str]:
    """The lines that the program prints; RuntimeError with all of them where it fails."""
    fetch()
    source = str(HERE / "Oldest.java")  # Java compiles it, and its warnings go to standard error
    return rival.run(["java", QUICK, "-cp", f"{JARS}/*", source, *words]).splitlines()
