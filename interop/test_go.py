"""The Go client franz-go at our broker."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from interop import franz_go
from interop.conftest import NewTopicName
from ottla import Consumer, TopicPartition

RUN_SECONDS = 60.0


@pytest.fixture(scope="module")
def program() -> Path:
    """The path of the compiled client."""
    if why := franz_go.missing():
        pytest.skip(why)
    return franz_go.PROGRAM


def test_franz_go_reads_in_a_group_what_it_committed_with_every_codec(
    program: Path, ottla_broker: str, fresh_topic: NewTopicName
) -> None:
    topic = fresh_topic(ottla_broker)
    done = subprocess.run(
        [program, ottla_broker, topic, "franz-go"], capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"committed {number}" for number in range(250)]
    place = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=ottla_broker, group_id="franz-go") as consumer:
        kept = consumer.committed([place])[place]
        assert kept is not None
        assert kept.offset >= 500
