"""Groups of foreign consumers on our broker while both sides are killed, and Kafka's tools for these groups."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from interop.conftest import NewTopicName
from interop.group_member import CLIENTS
from interop.kafka_tools import dump, tool
from ottla import Admin, Broker, NewTopic, Producer

DEADLINE = 30.0
PARTITIONS = 4


class MemberProcess:
    """A consumer in a separate process."""

    def __init__(self, client: str, address: str, topic: str, group: str) -> None:
        command = [sys.executable, "-m", "interop.group_member", client, address, topic, group]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.owned: set[int] = set()
        self.reports = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.owned = set(map(int, line.split()))
            self.reports += 1

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.02)


def shared(members: list[MemberProcess]) -> bool:
    """True if each partition has one owner and every member owns at least one."""
    owned = [each for member in members for each in member.owned]
    return sorted(owned) == list(range(PARTITIONS)) and all(member.owned for member in members)


@pytest.fixture
def undo() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("client", CLIENTS)
def test_partitions_move_when_a_member_or_the_coordinator_is_killed(
    tmp_path: Path, undo: ExitStack, client: str
) -> None:
    settings = {
        "group_min_session_timeout_ms": 1000,
        "group_consumer_session_timeout_ms": 2000,
        "group_consumer_heartbeat_interval_ms": 100,
    }
    broker = undo.enter_context(Broker(tmp_path, process=True, **settings))  # type: ignore[arg-type]
    address = broker.bootstrap_servers
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic("t", PARTITIONS)])
    members: list[MemberProcess] = []
    for _ in range(3):
        members.append(MemberProcess(client, address, "t", "g"))
        undo.callback(members[-1].kill)
    until(lambda: shared(members))
    members.pop(0).kill()
    until(lambda: shared(members))
    os.kill(broker.pid, signal.SIGKILL)
    broker.close()
    again = undo.enter_context(Broker(tmp_path, listen=address, process=True, **settings))
    members.append(MemberProcess(client, again.bootstrap_servers, "t", "g"))
    undo.callback(members[-1].kill)
    until(lambda: shared(members))
    before = sum(member.reports for member in members)
    with Producer(bootstrap_servers=again.bootstrap_servers) as producer:
        for number in range(100):
            producer.send("t", value=b"%d" % number, partition=number % PARTITIONS)
        producer.flush()
    until(lambda: lag(again.bootstrap_servers) == 0)
    assert shared(members)
    assert sum(member.reports for member in members) == before


def lag(address: str) -> int:
    """Return the number of records of `t` that the group has not committed yet."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": "g"})
    try:
        committed = consumer.committed([TopicPartition("t", n) for n in range(PARTITIONS)], 10)
        ends = [consumer.get_watermark_offsets(each, 10)[1] for each in committed]
        return sum(end - max(each.offset, 0) for each, end in zip(committed, ends, strict=True))
    finally:
        consumer.close()


def test_the_java_consumer_joins_and_kafkas_tools_see_and_change_its_group(
    ottla_broker: str, ottla_directory: Path, fresh_topic: NewTopicName
) -> None:
    topic = fresh_topic(ottla_broker)
    with Producer(bootstrap_servers=ottla_broker) as producer:
        for number in range(10):
            producer.send(topic, value=b"%d" % number)
        producer.flush()
    at = ("--bootstrap-server", ottla_broker)
    read = ("--topic", topic, "--group", "java", "--from-beginning", "--max-messages", 10)
    values = tool("consumer.ConsoleConsumer", *at, *read).split()
    assert values == [str(number) for number in range(10)]
    groups = "consumer.group.ConsumerGroupCommand"
    assert "java" in tool(groups, *at, "--list").split()
    assert re.search(r"^java +.*Empty", tool(groups, *at, "--group", "java", "--describe", "--state"), re.MULTILINE)
    described = tool(groups, *at, "--group", "java", "--describe", "--offsets")
    assert re.search(rf"java +{topic} +0 +10 +10 +0", described)
    tool(groups, *at, "--group", "java", "--topic", topic, "--reset-offsets", "--to-offset", 3, "--execute")
    assert re.search(rf"java +{topic} +0 +3 +10 +7", tool(groups, *at, "--group", "java", "--describe", "--offsets"))
    dumped = "".join(
        dump(file, "--offsets-decoder")
        for file in sorted(ottla_directory.glob("__consumer_offsets-*/*.log"))
        if file.stat().st_size
    )
    assert re.search(rf'"group":"java","topic":"{topic}","partition":0', dumped)
    assert re.search(r'"protocolType":"consumer".*"protocol":"range"', dumped)
    tool(groups, *at, "--group", "java", "--topic", topic, "--delete-offsets")
    tool(groups, *at, "--group", "java", "--delete")
    assert "java" not in tool(groups, *at, "--list").split()


def test_the_java_consumer_shares_by_kip_848_and_kafkas_tools_see_it(
    ottla_broker: str, ottla_directory: Path, fresh_topic: NewTopicName
) -> None:
    topic = fresh_topic(ottla_broker)
    with Producer(bootstrap_servers=ottla_broker) as producer:
        for number in range(10):
            producer.send(topic, value=b"%d" % number)
        producer.flush()
    at = ("--bootstrap-server", ottla_broker)
    protocol = ("--command-property", "group.protocol=consumer")
    read = ("--topic", topic, "--group", "java848", "--from-beginning", "--max-messages", 10)
    values = tool("consumer.ConsoleConsumer", *at, *read, *protocol).split()
    assert values == [str(number) for number in range(10)]
    groups = "consumer.group.ConsumerGroupCommand"
    listed = tool(groups, *at, "--list", "--type")
    assert re.search(r"^java848 +Consumer", listed, re.MULTILINE)
    described = tool(groups, *at, "--group", "java848", "--describe", "--offsets")
    assert re.search(rf"java848 +{topic} +0 +10 +10 +0", described)
    with ExitStack() as undo:
        member = MemberProcess("confluent_848", ottla_broker, topic, "java848")
        undo.callback(member.kill)
        until(lambda: bool(member.owned))
        state = tool(groups, *at, "--group", "java848", "--describe", "--state", "--verbose")
        assert re.search(r"^java848 +.*uniform +Stable +\d+ +\d+ +1", state, re.MULTILINE), state
        members = tool(groups, *at, "--group", "java848", "--describe", "--members", "--verbose")
        assert re.search(rf"{topic}:0", members), members
    dumped = "".join(
        dump(file, "--offsets-decoder")
        for file in sorted(ottla_directory.glob("__consumer_offsets-*/*.log"))
        if file.stat().st_size
    )
    for kind in ("3", "5", "6", "7", "8"):
        assert re.search(rf'"type":"{kind}","data":{{"groupId":"java848"', dumped), kind
    assert re.search(r'"memberEpoch":2,.*"assignmentEpochs":\[2\]', dumped), (
        "a group is in epoch 2 after its first subscription"
    )


def test_members_of_both_protocols_share_and_survive_each_other(tmp_path: Path, undo: ExitStack) -> None:
    settings = {
        "group_min_session_timeout_ms": 1000,
        "group_consumer_session_timeout_ms": 2000,
        "group_consumer_heartbeat_interval_ms": 100,
    }
    broker = undo.enter_context(Broker(tmp_path, process=True, **settings))  # type: ignore[arg-type]
    address = broker.bootstrap_servers
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic("t", PARTITIONS)])

    def member(client: str) -> MemberProcess:
        made = MemberProcess(client, address, "t", "g")
        undo.callback(made.kill)
        return made

    old = member("confluent")
    until(lambda: shared([old]))
    new = member("confluent_848")
    until(lambda: shared([old, new]))
    other = member("kafka_python")
    until(lambda: shared([old, new, other]))
    os.kill(broker.pid, signal.SIGKILL)
    broker.close()
    undo.enter_context(Broker(tmp_path, listen=address, process=True, **settings))
    until(lambda: shared([old, new, other]))
    new.kill()  # no member sends a LeaveGroup: the group is a classic one again when the session expires
    until(lambda: shared([old, other]))
    newer = member("confluent_848")
    until(lambda: shared([old, other, newer]))
    old.kill()
    until(lambda: shared([other, newer]))
