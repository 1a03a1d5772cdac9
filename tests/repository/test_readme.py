"""What README shows works as it is shown."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ottla import Broker, Producer

README = (Path(__file__).parent.parent.parent / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    return [text for found, text in BLOCK.findall(README) if found == language]


def test_the_first_program_sends_a_record_and_reads_it_back() -> None:
    program = blocks("python")[0]
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert "RecordMetadata(topic='hello'" in result.stdout
    assert result.stdout.endswith("0 b'k' b'world'\n")


def test_the_program_of_a_group_reads_what_is_there() -> None:
    program = next(text for text in blocks("python") if "subscribe(" in text and "group_id" in text)
    with Broker() as broker:
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("hello", b"world").result(20)
        program = program.replace("127.0.0.1:9092", broker.bootstrap_servers) + "        break\n"
        program = f"from ottla import Consumer\n{program}"
        result = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
        )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("mine: [TopicPartition(topic='hello', partition=0)")
    assert "0 0 b'world'\ngiven up: [" in result.stdout


def test_every_program_compiles() -> None:
    for program in blocks("python"):
        compile(program, "README.md", "exec")


def commands() -> list[list[str]]:
    """Each `ottla …` of the shell blocks, in words."""
    lines = [line.rpartition("|")[2].strip() for block in blocks("") for line in block.splitlines()]
    return [shlex.split(line) for line in lines if line.startswith("ottla ")]


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_command_exists_with_its_options(command: list[str]) -> None:
    words = [word for word in command[1:] if not word.startswith("-")][:2]
    # These have verbs of their own; for the others the second word is a topic.
    verb = words if words[0] in ("topics", "groups", "trace") else words[:1]
    result = subprocess.run(
        [sys.executable, "-m", "ottla.cli.main", *verb, "--help"], capture_output=True, text=True, check=True
    )
    assert all(option in result.stdout for option in command if option.startswith("--"))
