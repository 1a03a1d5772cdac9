"""Measure three combined nodes: the time until they serve requests, their memory, and the recovery after a kill.

Ours and Apache Kafka's run in turns, with the same settings (the short times of `ottla.Cluster`: sessions of 3 s), a
topic of three replicas and `min.insync.replicas=2`, with our own clients on both sides.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Protocol, Self

from benchmarks.brokers import Running
from benchmarks.duel import Figures, line, report
from benchmarks.race import resident_bytes
from ottla import Admin, Cluster, NewTopic, Producer
from ottla.broker.embedding.local_nodes import LocalNode, build_settings, plan_nodes
from ottla.errors import OttlaError
from ottla.free_ports import HeldPorts
from rivals import apache_kafka as rival

ROUNDS = int(os.environ.get("ROUNDS", "3"))
IDLE_SECONDS = 5.0
PATIENCE = 120.0
NAMES = itertools.count(1)


class Three(Protocol):
    """A cluster with node ids from 1."""

    @property
    def bootstrap_servers(self) -> str: ...
    def kill(self, node: int) -> None: ...
    def start(self, node: int) -> None: ...
    def pid(self, node: int) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Kafkas:
    """Apache Kafka's nodes, formatted by its own tool and started with the flags of its start script."""

    def __init__(self) -> None:
        self._temporary = TemporaryDirectory(prefix="ottla-bench-")
        with HeldPorts() as ports:
            self._nodes = {each.node_id: each for each in plan_nodes(3, ports)}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.bootstrap_servers = ",".join(f"127.0.0.1:{each.port}" for each in self._nodes.values())
        voters = [f"{n.node_id}@127.0.0.1:{n.controller_port}:{n.directory_id}" for n in self._nodes.values()]
        for node in self._nodes.values():
            properties = self._file(node)
            properties.write_text(
                rival.render(build_settings(node, list(self._nodes.values()), properties.with_suffix(""), {}))
            )
            words = ("format", "-t", rival.CLUSTER_ID, "-c", str(properties), "--initial-controllers", ",".join(voters))
            rival.run(rival.java("kafka.tools.StorageTool", *words))

    def _file(self, node: LocalNode) -> Path:
        return Path(self._temporary.name) / f"node-{node.node_id}.properties"

    def __enter__(self) -> Self:
        for node in self._nodes:
            self._begin(node)
        self._wait(*self._nodes)
        return self

    def _begin(self, node: int) -> None:
        command = rival.java("kafka.Kafka", str(self._file(self._nodes[node])))
        command[1:1] = [*rival.HEAP, *rival.FLAGS]
        self._processes[node] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _wait(self, *nodes: int) -> None:
        for node in nodes:
            until(lambda node=node: rival.answers(self._nodes[node].port), f"node {node} answers")  # type: ignore[misc]

    def start(self, node: int) -> None:
        self._begin(node)
        self._wait(node)

    def kill(self, node: int) -> None:
        self._processes[node].kill()
        self._processes[node].wait()

    def pid(self, node: int) -> int:
        return self._processes[node].pid

    def __exit__(self, *error: object) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._temporary.cleanup()


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.perf_counter() + PATIENCE
    while not condition():
        assert time.perf_counter() < deadline, what
        time.sleep(0.005)


def succeeds(call: Callable[[], object]) -> bool:
    """Return True if the call succeeds. It may fail while a node is down."""
    try:
        call()
    except OttlaError:
        return False
    return True


def figures(make: Callable[[], Three]) -> Figures:
    """Measure all figures of one cluster."""
    three = make()
    clock = time.perf_counter()
    with three, Admin(bootstrap_servers=three.bootstrap_servers) as admin:
        topic = new_topic(admin)
        with Producer(bootstrap_servers=three.bootstrap_servers, acks="all", enable_idempotence=True) as producer:
            producer.send(topic, b"x").result(PATIENCE)
            found = {"start → first acknowledged write, s": time.perf_counter() - clock}
        time.sleep(IDLE_SECONDS)
        found["memory idle, all three, MB"] = sum(resident_bytes(three.pid(each)) for each in (1, 2, 3)) / 1e6
        return found | {
            "kill −9 of a leader → next acknowledged write, s": after_leader(three, admin),
            "kill −9 of the controller → next topic is led, s": after_controller(three, admin),
        }


def new_topic(admin: Admin, leader: int = 1) -> str:
    name = f"topic-{next(NAMES)}"
    others = [each for each in (1, 2, 3) if each != leader]
    admin.create_topics([NewTopic(name, replica_assignments={0: (leader, *others)})])
    until(lambda: succeeds(lambda: admin.describe_topics([name])) and in_sync(admin, name) == 3, f"{name} is in sync")
    return name


def in_sync(admin: Admin, topic: str) -> int:
    return len(admin.describe_topics([topic])[topic].partitions[0].in_sync_replicas)


def active(admin: Admin) -> int:
    return int(admin.describe_metadata_quorum().leader_id)


def after_leader(three: Three, admin: Admin) -> float:
    """Kill a leader that is not the active controller, and return the seconds until the next acknowledged write."""
    leader = next(each for each in (1, 2, 3) if each != active(admin))
    topic = new_topic(admin, leader)
    with Producer(bootstrap_servers=three.bootstrap_servers, acks="all", enable_idempotence=True) as producer:
        producer.send(topic, b"before").result(PATIENCE)
        clock = time.perf_counter()
        three.kill(leader)
        producer.send(topic, b"after").result(PATIENCE)
        span = time.perf_counter() - clock
    three.start(leader)
    until(lambda: in_sync(admin, topic) == 3, "it is in sync again")
    return span


def after_controller(three: Three, admin: Admin) -> float:
    controller = active(admin)
    name = f"topic-{next(NAMES)}"
    clock = time.perf_counter()
    three.kill(controller)
    until(
        lambda: succeeds(lambda: admin.create_topics([NewTopic(name, 1, 2)])) or topic_exists(admin, name),
        "a topic is made",
    )
    until(lambda: succeeds(lambda: is_led(admin, name)) and is_led(admin, name), "it is led")
    return time.perf_counter() - clock


def topic_exists(admin: Admin, topic: str) -> bool:
    """True if the topic exists, because an attempt succeeded although its response was an error."""
    try:
        return topic in admin.list_topics()
    except OttlaError:
        return False


def is_led(admin: Admin, topic: str) -> bool:
    return admin.describe_topics([topic])[topic].partitions[0].leader >= 0


AIMS = {
    "start → first acknowledged write, s": "≤ 1.5 s",
    "memory idle, all three, MB": "≤ 105 MB",
    "kill −9 of a leader → next acknowledged write, s": "≤ Kafka's, ≤ 1.5 s",
    "kill −9 of the controller → next topic is led, s": "≤ Kafka's",
}


MAKERS: tuple[Callable[[], Three], ...] = (lambda: Cluster(3), Kafkas)


def main() -> None:
    rival.fetch()
    results: list[list[Figures]] = [[], []]
    for _ in range(ROUNDS):
        for make, found in zip(MAKERS, results, strict=True):
            found.append(figures(make))
    names = [Running(name, "", 0) for name in ("Ottla", "Apache Kafka")]
    report("Three nodes", names, [(line(name, results), aim) for name, aim in AIMS.items()])


if __name__ == "__main__":
    main()
