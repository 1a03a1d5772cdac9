"""Franz-go, of which there is no other copy than the Go module proxy's, at our broker."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from interop.conftest import NewTopicName
from ottla import Consumer, TopicPartition
from rivals.apache_kafka import ROOT

SOURCE = Path(__file__).with_name("go")
PROGRAM = ROOT / ".cache" / "franz-go" / "client"
BUILD_SECONDS, RUN_SECONDS = 180.0, 60.0


@pytest.fixture(scope="module")
def program() -> Path:
    """The compiled client; what it needs comes from the module proxy."""
    if shutil.which("go") is None:
        pytest.skip("there is no Go here, which franz-go is compiled by: install it to have franz-go tried as well")
    command = ["go", "build", "-buildvcs=false", "-o", str(PROGRAM), "."]
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    try:
        done = subprocess.run(
            command, cwd=SOURCE, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip("Go does not bring and compile franz-go in three minutes: it is not tried")
    if done.returncode:
        pytest.skip(f"Go does not compile franz-go, which is therefore not tried: {done.stderr.strip()}")
    return PROGRAM


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
