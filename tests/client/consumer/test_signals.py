"""Signals that end a consumer at any moment: no record is lost, and none is committed that was not processed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ottla import Admin, Broker, NewTopic, Producer
from tests.client.conftest import fresh_name
from tests.patience import PATIENCE

SIGNALLED = """
import json, os, signal, sys, threading
from random import Random
from ottla import Consumer, TopicPartition
servers, group, topic, way, form, rounds = sys.argv[1:]
random = Random(form + way)
tp = TopicPartition(topic, 0)
settings = dict(
    bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest", max_poll_records=50,
    group_protocol="consumer" if way == "consumer" else "classic", auto_commit_interval_ms=5,
    max_partition_fetch_bytes=20_000,
)
def end(number, frame):
    raise SystemExit(143)
signal.signal(signal.SIGTERM, end)
processed, gaps, ends = 0, [], []
def process(offset):
    global processed
    if offset > processed:
        gaps.append((processed, offset))
    processed = max(processed, offset + 1)
def read(consumer, number):
    first = True
    while True:
        if form == "loop":
            for record in consumer:
                process(record.offset)
                if first:
                    first = begin(number)
        elif form == "arrow":
            for offset in consumer.poll_arrow(1.0, max_bytes=1)["offset"].to_pylist():
                process(offset)
                if first:
                    first = begin(number)
        else:
            for record in consumer.poll(1.0):
                process(record.offset)
                if first:
                    first = begin(number)
def begin(number):  # later in each round, so that a slow machine gets as far as a commit
    threading.Timer(random.random() * 0.03 * (each + 1), os.kill, (os.getpid(), number)).start()
    return False
for each in range(int(rounds)):
    if processed > 300_000:
        break
    try:
        with Consumer(**settings) as consumer:
            consumer.assign([tp]) if way == "assign" else consumer.subscribe([topic])
            read(consumer, (signal.SIGINT, signal.SIGTERM)[each % 2])
    except (KeyboardInterrupt, SystemExit):
        pass
    consumer = Consumer(**settings)
    found = consumer.committed([tp])[tp]
    consumer.close()
    ends.append((processed, 0 if found is None else found.offset))
print(json.dumps([gaps, ends]))
"""


@pytest.fixture(scope="module")
def long_topic(group_broker: Broker) -> str:
    """A topic of one partition with more records than a test's process reads."""
    name = fresh_name()
    with Admin(bootstrap_servers=group_broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(name, 1)])
    with Producer(bootstrap_servers=group_broker.bootstrap_servers) as producer:
        producer.send_many(name, [b"%d" % n for n in range(400_000)])
    return name


@pytest.mark.behaviour("C6")
@pytest.mark.parametrize("way", ["assign", "classic", "consumer"])
@pytest.mark.parametrize("form", ["poll", "loop", "arrow"])
def test_a_signal_leaves_no_record_committed_that_was_not_processed(
    group_broker: Broker, group_id: str, long_topic: str, way: str, form: str
) -> None:
    arguments = [group_broker.bootstrap_servers, group_id, long_topic, way, form, "12"]
    done = subprocess.run(
        [sys.executable, "-c", SIGNALLED, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    gaps, ends = json.loads(done.stdout)
    assert gaps == []
    assert [end for end in ends if end[1] > end[0]] == []
    assert ends[-1][1] > 0
