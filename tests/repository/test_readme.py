"""What README shows works as it is shown."""

from __future__ import annotations

import asyncio
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ottla.aio
from ottla import Broker, Producer, TopicPartition

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


def test_the_program_in_asyncio_copies_what_is_there() -> None:
    scope: dict[str, Any] = {}
    exec(next(text for text in blocks("python") if "async def copy" in text), scope)

    async def first_of_the_copy(servers: str) -> bytes:
        copying = asyncio.ensure_future(scope["copy"](servers))
        async with ottla.aio.Consumer(bootstrap_servers=servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("copy", 0)])
            async with asyncio.timeout(60):
                async for record in consumer:
                    copying.cancel()
                    await asyncio.wait([copying])
                    return bytes(record.value)
        raise AssertionError

    with Broker() as broker:
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("hello", b"world", key=b"k").result(20)
        assert asyncio.run(first_of_the_copy(broker.bootstrap_servers)) == b"world"


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
