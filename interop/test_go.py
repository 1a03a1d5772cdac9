"""The Go client franz-go at our broker."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from interop import franz_go
from interop.conftest import NewTopicName
from ottla import Consumer, TopicPartition

RUN_SECONDS = 60.0
SHARE_TESTS = ("TestShareGroup", "TestShareGroupETL", "TestShareGroupAckOnClose", "TestShareGroupOffsetsAdmin")
SHARE_RECORDS = 20_000
"""The number of records that go through two share groups, one after the other."""


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


def test_franz_gos_own_tests_of_share_groups_pass(ottla_broker: str) -> None:
    if why := franz_go.missing_tests():
        pytest.skip(why)
    settings = {"KGO_SEEDS": ottla_broker, "KGO_TEST_RF": "1", "KGO_TEST_RECORDS": str(SHARE_RECORDS)}
    command = [str(franz_go.TESTS), "-test.v", "-test.run", f"^({'|'.join(SHARE_TESTS)})$"]
    done = subprocess.run(
        command, env=os.environ | settings, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout
    for name in SHARE_TESTS:
        assert f"--- PASS: {name} (" in done.stdout, done.stdout
