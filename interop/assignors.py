"""Kafka's own assignors, in Java; as a program it makes the goldens of `make test` anew.

python -m interop.assignors > tests/client/consumer/assignors/goldens.txt
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from random import Random

from ottla.client.consumer.assignors.choice import KNOWN
from rivals.apache_kafka import JARS, fetch
from tests.client.consumer.assignors.cases import Case, random_case, read_shares, tell_shares

SOURCE = Path(__file__).with_name("java") / "Assign.java"
PATIENCE = 60.0


def answers_of_java(cases: Sequence[Case]) -> list[str]:
    """What Java's assignors make of the cases, one line for each."""
    fetch()
    # Without a logging library: what they have to say would be mixed with the answers.
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
    """A dozen cases for each assignor, with Java's answers."""
    chance = Random(8)
    cases = [random_case(name, chance) for name in KNOWN for _ in range(12)]
    print("# Groups, and what Java's assignors make of them. Made by interop/assignors.py.")
    for case, answer in zip(cases, answers_of_java(cases), strict=True):
        print("\n".join([*case.lines(), f"answer\t{tell_shares(read_shares(answer))}"]))


if __name__ == "__main__":
    main()
