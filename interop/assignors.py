"""Run Kafka's own assignors in Java. As a program, it regenerates the golden file of `make test`.

python -m interop.assignors > tests/client/consumer/assignors/goldens.txt
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

from ottla.client.consumer.assignors.choice import KNOWN
from rivals.apache_kafka import JARS, fetch
from tests.client.consumer.assignors.cases import Case, format_shares, random_case, read_shares

SOURCE = Path(__file__).with_name("java") / "Assign.java"
PATIENCE = 60.0


def compute_java_assignments(cases: Sequence[Case]) -> list[str]:
    """Return the assignment that Java's assignors compute for each case, one line per case."""
    fetch()
    # Without a logging library, because its messages would be mixed with the results.
    jars = [str(jar) for pattern in ("kafka-clients-*.jar", "slf4j-api-*.jar") for jar in JARS.glob(pattern)]
    done = subprocess.run(
        ["java", "-cp", ":".join(jars), str(SOURCE)],
        input="".join(f"{line}\n" for case in cases for line in case.lines()),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == len(cases)
    return answers


def main() -> None:
    """Print a dozen cases for each assignor, with Java's results."""
    chance = Random(8)
    cases = [random_case(name, chance) for name in KNOWN for _ in range(12)]
    print("# Groups, and what Java's assignors make of them. Made by interop/assignors.py.")
    for case, answer in zip(cases, compute_java_assignments(cases), strict=True):
        print("\n".join([*case.lines(), f"answer\t{format_shares(read_shares(answer))}"]))


if __name__ == "__main__":
    main()
