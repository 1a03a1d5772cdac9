"""README for who has nothing but what its text names: the blocks in an environment that has just been made.

Needs the network, for pip; what needs Spark, which takes long to install, is in `test_spark_readme.py`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from ottla import Consumer, TopicPartition
from tests.repository.readme import README, ROOT, Reader, commands, programs


class Fresh:
    """An environment that has just been made, into which a reader installs what README's text names, when it names it."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        self.python = str(folder / "bin" / "python")

    def install(self, extra: str) -> None:
        """Compiled or not makes no difference to a block, neither for Ottla (`make wheels` sees to that) nor for the byte code of others."""
        assert f"pip install '.[{extra}]'" in README
        command = ["env", "OTTLA_COMPILE=no", self.python, "-m", "pip", "--quiet", "install", "--no-compile"]
        result = subprocess.run([*command, f"{ROOT}[{extra}]"], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr


def test_a_reader_who_has_just_what_readme_names_gets_what_it_says(tmp_path: Path) -> None:
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
        assert said.startswith("mine: [TopicPartition(topic='hello', partition=0)")
        assert re.search(r"\n\d 0 b'world'\ngiven up: \[", said)
        assert copied(reader, copy, "copy") == [b"world"]
        assert "billing" in reader.run_shell(look)
        assert copied(reader, bills, "bills") == [b"a bill for world"]
        fresh.install("pandas")
        assert "b'world'" in reader.run_program(table)


def copied(reader: Reader, program: str, topic: str) -> list[bytes]:
    """What the program, which says nothing and has no end, writes into `topic`."""
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
