"""A quorum of one controller of Apache Kafka's and two of ours, who copy its log and vote for it, and never decide in its place."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from interop.cluster import wait_for
from interop.kafka_tools import tool
from ottla.coordination.quorum.control_records import LeaderChangeMessage, decode_control
from ottla.records.batch import iter_headers
from ottla.storage.state_log.snapshot import control_of
from rivals import apache_kafka as rival
from tests.broker.quorum_nodes import CLUSTER, Place, new_hosts

KAFKA, OURS = 1, (2, 3)
LEADER_CHANGE = 2


class KafkaController(Place):
    """One of Apache Kafka's, with the same settings."""

    def start(self) -> None:
        command = rival.java("kafka.Kafka", str(self.file))
        command[1:1] = ["-Xmx256m", "-XX:+UseSerialGC"]
        with self.file.with_suffix(".out").open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output, cwd=self.file.parent, text=True)


@pytest.fixture
def places(tmp_path: Path) -> Iterator[list[Place]]:
    """Three that are formatted, each by its own tool; none runs yet."""
    rival.fetch()
    hosts = new_hosts(3)
    made = [KafkaController(tmp_path, KAFKA, hosts[0]), *(Place(tmp_path, id_, hosts[id_ - 1]) for id_ in OURS)]
    listed = ",".join(f"{each.node_id}@{each.address}:{each.voter.directory_id}" for each in made)
    kafka, *ours = made
    line = f"controller.quorum.bootstrap.servers={kafka.address}\n"
    kafka.file.write_text(kafka.file.read_text() + line)
    rival.run(rival.java("kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(kafka.file), "-I", listed))
    with ExitStack() as undo:
        for each in made:
            undo.callback(each.kill)
        for each in ours:
            each.format([each.voter for each in made])
        yield made


def leader(place: Place) -> int:
    """Whom a node takes for the leader; -1 where it knows of none, or does not answer."""
    try:
        found: int = place.describe().leader_id
    except (OSError, EOFError):
        return -1
    return found


def leaders(log: bytes) -> list[int]:
    """Who has led, by a log."""
    found = []
    for position, header in iter_headers(log):
        for kind, value in control_of(log, position, header):
            record: Any = decode_control(kind, value or b"") if kind == LEADER_CHANGE else None
            if isinstance(record, LeaderChangeMessage):
                found.append(record.leader_id)
    return found


def is_decided_over(log: bytes) -> bool:
    """Whether anything is in a log besides what the quorum says of itself."""
    return any(not header.is_control for _, header in iter_headers(log))


def test_ours_lead_until_kafkas_comes_then_copy_and_vote_and_wait_for_it(places: list[Place]) -> None:
    kafka, *ours = places
    for each in ours:
        each.start()
    wait_for(lambda: leader(ours[0]) in OURS and leader(ours[0]) == leader(ours[1]), "ours elect one of them")
    said = tool("MetadataQuorumCommand", "--bootstrap-controller", ours[0].address, "describe", "--status")
    assert ["LeaderId:", str(leader(ours[0]))] in [line.split() for line in said.splitlines()], said

    kafka.start()
    wait_for(lambda: {leader(each) for each in places} == {KAFKA}, "who can decide leads")
    wait_for(lambda: is_decided_over(ours[0].log) and is_decided_over(ours[1].log), "it decides, and ours copy that")
    wait_for(lambda: ours[0].log == ours[1].log == kafka.log, "the copies are the same")

    kafka.kill()
    kafka.start()
    wait_for(
        lambda: leaders(ours[0].log)[-2:] == [KAFKA, KAFKA], "it leads again by our votes, and nobody did in between"
    )
    wait_for(lambda: ours[0].log == ours[1].log == kafka.log, "the copies are the same again")
