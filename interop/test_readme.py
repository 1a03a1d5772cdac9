"""Run the blocks of the README and its further pages in a new environment with only the packages that their text
names.

The network is required for pip. Blocks that need Spark, which takes long to install, are in `test_spark_readme.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from ottla import Consumer, TopicPartition
from tests.repository.readme import GUIDE, ROOT, Reader, commands, programs


class Fresh:
    """A new environment, into which the extras are installed when the text names them."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.python = str(folder / "bin" / "python")

    def install(self, extra: str) -> None:
        """Install an extra without compiling hot loops or byte code.

        No block depends on it; `make wheels` tests compiled wheels.
        """
        assert f"'.[{extra}]'" in GUIDE
        command = ["env", "OTTLA_COMPILE=no", self.python, "-m", "pip", "--quiet", "install", "--no-compile"]
        result = subprocess.run([*command, f"{ROOT}[{extra}]"], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr


def test_every_program_and_command_of_the_guide_prints_what_its_text_promises(tmp_path: Path) -> None:
    first, group, copy, table, bills = programs()
    serve, look = commands()
    fresh = Fresh(tmp_path / "fresh")
    fresh.install("arrow")
    with Reader(tmp_path, fresh.python) as reader:
        said = reader.run_program(first)
        assert "RecordMetadata(topic='hello'" in said
        assert "0 b'k' b'world'\npyarrow.Table" in said
        assert reader.run_shell(serve).endswith("world\n")
        said = reader.run_program(group, until=lambda said: "b'world'" in said)
        warning, _, said = said.partition("\n")
        assert warning.startswith("running without compiled hot loops"), "this environment was installed without them"
        assert said.startswith("assigned: [TopicPartition(topic='hello', partition=0)")
        assert re.search(r"\n\d 0 b'world'\nrevoked: \[", said)
        assert copied(reader, copy, "copy") == [b"world"]
        assert "billing" in reader.run_shell(look)
        assert copied(reader, bills, "bills") == [b"a bill for world"]
        fresh.install("pandas")
        assert "b'world'" in reader.run_program(table)


def copied(reader: Reader, program: str, topic: str) -> list[bytes]:
    """Run a program that has no output and no end, and return the values that it writes to `topic`."""
    found: list[bytes] = []

    def is_there(_: str) -> bool:
        found.extend(record.value or b"" for record in consumer.poll(timeout=0.5))
        return bool(found)

    with Consumer(
        bootstrap_servers=reader.servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        reader.run_program(program, until=is_there)
    return found
