"""The guide's Spark blocks in an environment with only the extra that their text names, linked from the packages here.

Their other effects are checked in `tests/spark/test_readme.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ottla import Broker, Producer, read_table
from tests.repository.readme import GUIDE, Reader, blocks, environment, spark_blocks

pytestmark = pytest.mark.usefixtures("quick_drivers")


@contextmanager
def reading(folder: Path, extras: str) -> Iterator[Reader]:
    """Yield a reader with only Ottla and these extras, which the guide names, and records in two topics."""
    assert f"'.[{extras}]'" in GUIDE
    with (
        Reader(folder, str(environment(folder / "environment", extras))) as reader,
        Broker(listen=reader.servers),
        Producer(bootstrap_servers=reader.servers) as producer,
    ):
        for topic, value in ("hello", b"world"), ("orders", b'{"id": 7, "card": "4111"}'), ("orders", b"no order"):
            producer.send(topic, value).result(60)
        yield reader


def values(reader: Reader, topic: str) -> list[bytes | None]:
    found: list[bytes | None] = read_table(topic, bootstrap_servers=reader.servers)["value"].to_pylist()
    return found


def test_topics_are_read_and_written_in_spark_with_its_extra_alone(tmp_path: Path) -> None:
    words, orders, copying, _ = spark_blocks()
    with reading(tmp_path, "spark") as reader:
        reader.run_program(words + orders + copying + "copying.processAllAvailable()")
        assert values(reader, "words") == [b"world"]


def test_a_table_needs_the_extra_that_its_text_names(tmp_path: Path) -> None:
    words, _, _, keeping = spark_blocks()
    with reading(tmp_path, "spark,tables") as reader:
        assert "77 6F 72 6C 64" in reader.run_program(words + keeping)  # the output of `show` for "world"


def test_a_pipeline_runs_with_its_extra_alone(tmp_path: Path) -> None:
    (file,) = blocks("yaml")
    with reading(tmp_path, "pipelines") as reader:
        (tmp_path / "orders.yaml").write_text(file.replace("127.0.0.1:9092", reader.servers), encoding="utf-8")
        reader.run_shell("ottla pipeline validate orders.yaml\nottla pipeline run --once orders.yaml")
        assert values(reader, "orders-dead") == [b"no order"]
