"""Work that goes on and on leaves nothing behind in the broker's memory, nor open files."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from ottla import Admin, Consumer, NewTopic, Producer
from ottla.broker.embedded import Broker

ROUNDS = 20
BLOCKS_A_ROUND = 100
"""Of memory: fewer than a round has requests."""
REMEMBERED = {"UUID", "Timer", "Mark"}
"""Ids are kept by the reader of requests, alarms that were cancelled until there are a hundred, and where a number stood at the ends of
the last two windows by each metric of a client: on a slow machine one ends meanwhile."""
MARKS = 3
"""That a metric keeps at most: of where it stood at first, or at the end of a window."""


class Work:
    """What clients of every kind do, at a broker in this process."""

    def __init__(self, servers: str, undo: ExitStack) -> None:
        self.servers = servers
        self.admin = undo.enter_context(Admin(bootstrap_servers=servers))
        self.producer = undo.enter_context(Producer(bootstrap_servers=servers))
        self.transactional = undo.enter_context(Producer(bootstrap_servers=servers, transactional_id="tx"))
        self.transactional.init_transactions()

    def once(self) -> None:
        """Records, transactions, a member that comes and goes, a topic that does, and who asks about all that."""
        self.admin.create_topics([NewTopic("made", 2, 1)])
        for number in range(50):
            self.producer.send("t", b"%d" % number).result(60)
        with self.transactional.transaction():
            self.transactional.send("t", b"within")
        with Consumer(bootstrap_servers=self.servers, group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["t"])
            while not consumer.poll(5):
                pass
            consumer.commit()
        self.admin.describe_consumer_groups(["g"])
        self.admin.list_topics()
        self.admin.delete_topics(["made"])


@pytest.fixture
def work(tmp_path: Path) -> Iterator[Work]:
    broker = Broker(tmp_path, offsets_topic_num_partitions=1, transaction_state_log_num_partitions=1)
    with broker, ExitStack() as undo:
        yield Work(broker.bootstrap_servers, undo)


def kinds() -> Counter[str]:
    """How many objects there are of each kind, once those are gone that nobody needs."""
    gc.collect()
    return Counter(type(each).__name__ for each in gc.get_objects())


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_what_is_done_over_and_over_leaves_nothing_behind(work: Work) -> None:
    for _ in range(5):
        work.once()
    before, files, blocks = kinds(), open_files(), sys.getallocatedblocks()
    for _ in range(ROUNDS):
        work.once()
    after = kinds()
    more = after - before
    more["tuple"] -= more["Timer"]  # in which they wait
    assert {kind: count for kind, count in more.items() if count >= ROUNDS and kind not in REMEMBERED} == {}
    assert after["Mark"] <= MARKS * after["Sensor"]
    assert sys.getallocatedblocks() - blocks < BLOCKS_A_ROUND * ROUNDS
    assert open_files() - files < ROUNDS
