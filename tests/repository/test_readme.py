"""What README shows works as it is shown: every block is run, in its order, as a reader would run it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from ottla import Consumer, TopicPartition
from tests.repository.pages import blocks_of
from tests.repository.readme import BLOCK, README, ROOT, Reader, blocks, commands, extras, programs, spark_blocks


def test_every_block_is_run_here_or_in_the_tests_of_spark() -> None:
    assert (len(programs()), len(spark_blocks()), len(commands())) == (5, 4, 2)
    others = [text for text in blocks("") if text not in commands()]
    assert [text for text in others if not re.match(r"(make|pip install) ", text)] == []


def test_a_reader_gets_what_readme_says_from_every_block(tmp_path: Path) -> None:
    read_through(tmp_path, sys.executable)


def test_the_korean_readme_shows_the_same_blocks() -> None:
    korean = BLOCK.findall((ROOT / "README.ko.md").read_text(encoding="utf-8"))
    assert len(korean) == 4
    assert set(korean) <= set(BLOCK.findall(README))


def test_how_kafka_works_shows_the_same_blocks_in_both_languages() -> None:
    assert blocks_of("how-kafka-works.ko.md") == blocks_of("how-kafka-works.md") != []


def read_through(folder: Path, python: str) -> None:
    """All that needs no Spark."""
    first, group, copy, table, bills = programs()
    serve, look = commands()
    with Reader(folder, python) as reader:
        said = reader.run_program(first)
        assert "RecordMetadata(topic='hello'" in said
        assert "0 b'k' b'world'\npyarrow.Table" in said
        assert reader.run_shell(serve).endswith("world\n")
        said = reader.run_program(group, until=lambda said: "b'world'" in said)
        assert said.startswith("mine: [TopicPartition(topic='hello', partition=0)")
        assert re.search(r"\n\d 0 b'world'\ngiven up: \[", said)
        assert copied(reader, copy, "copy") == [b"world"]
        assert "billing" in reader.run_shell(look)
        assert "b'world'" in reader.run_program(table)
        assert copied(reader, bills, "bills") == [b"a bill for world"]


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


@pytest.mark.parametrize("name", sorted(set(re.findall(r"pip install '[^']*\[([\w,]+)\]'", README))))
def test_an_extra_that_is_named_exists(name: str) -> None:
    assert set(name.split(",")) <= extras()
