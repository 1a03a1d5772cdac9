"""Add a broker of ours to a Kafka cluster, move a topic to it, and move it back."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from examples.grow.load import Load, read_all
from examples.grow.timeline import Timeline
from interop.kafka_tools import Tools
from ottla import Admin, NewTopic
from rivals import apache_kafka as rival
from rivals.kafka_cluster import OttlaNode, View, kafka_node, wait_for

TOPIC, PARTITIONS = "orders", 3
KAFKA, OURS = 1, 7
LETTERS = {KAFKA: "K", OURS: "O"}
WATCH_SECONDS = 2.0
"""The duration of each state, in seconds."""


class Outcome(NamedTuple):
    """The results of the story."""

    written: int
    missing: int
    twice: int
    failed: int
    timeline: Timeline


def play(folder: Path, kafka: rival.ApacheKafka) -> Outcome:
    """Run the story, from the first record to the count."""
    view, ours = View(kafka), OttlaNode(OURS, kafka, folder)
    with Admin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        assignments = dict.fromkeys(range(PARTITIONS), (KAFKA,))
        admin.create_topics([NewTopic(TOPIC, replica_assignments=assignments)])
    load = Load(kafka.bootstrap_servers, TOPIC, PARTITIONS)
    try:
        with Tools() as tools, load, Timeline(lambda: load.acknowledged, lambda: leaders(view)) as timeline:
            move = Move(kafka, view, tools, folder / "plan.json")
            timeline.tell(f"Apache Kafka alone has the {PARTITIONS} partitions of {TOPIC}, and somebody writes to them")
            time.sleep(WATCH_SECONDS)
            ours.start()
            ours.wait_until_in()
            timeline.tell(f"a broker of ours has joined as number {OURS}: nothing is on it yet")
            time.sleep(WATCH_SECONDS)
            move.to([KAFKA, OURS])
            timeline.tell("it follows: both have copies that are in sync")
            time.sleep(WATCH_SECONDS)
            move.to([OURS])
            timeline.tell("it leads, and has them alone")
            time.sleep(WATCH_SECONDS)
            move.to([KAFKA])
            timeline.tell("Apache Kafka has them back, and its files are gone from ours")
            time.sleep(WATCH_SECONDS)
            ours.stop()
            timeline.tell("ours has left")
            time.sleep(WATCH_SECONDS)
        found = read_all(kafka.bootstrap_servers, TOPIC, PARTITIONS)
    finally:
        if ours.is_running:
            ours.kill()
    missing, twice = load.sent - len(set(found)), len(found) - len(set(found))
    return Outcome(load.sent, missing, twice, len(load.failed), timeline)


class Move(NamedTuple):
    """Moves all partitions with Kafka's tool for reassignments."""

    kafka: rival.ApacheKafka
    view: View
    tools: Tools
    plan: Path

    def to(self, replicas: Sequence[int]) -> None:
        """Assign these replicas to all partitions, and wait until they are in sync."""
        moved = [{"topic": TOPIC, "partition": index, "replicas": list(replicas)} for index in range(PARTITIONS)]
        self.plan.write_text(json.dumps({"version": 1, "partitions": moved}))
        at = "--bootstrap-server", self.kafka.bootstrap_servers, "--reassignment-json-file", self.plan
        said = self.tools.run("reassign.ReassignPartitionsCommand", *at, "--execute")
        if said.status:
            raise RuntimeError(said.text)
        wait_for(lambda: all(self._has(index, replicas) for index in range(PARTITIONS)), "the partitions do not move")

    def _has(self, index: int, replicas: Sequence[int]) -> bool:
        state = self.view.state(TOPIC, index)
        return state is not None and state.replicas == tuple(replicas) and set(state.isr) == set(replicas)


def leaders(view: View) -> str:
    """Return a letter for the leader of each partition."""
    states = (view.state(TOPIC, index) for index in range(PARTITIONS))
    return "".join("·" if state is None else LETTERS.get(state.leader, "·") for state in states)


def run(folder: Path) -> Outcome:
    """Run the story with a new Kafka cluster."""
    rival.fetch()
    with kafka_node() as kafka:
        return play(folder, kafka)
