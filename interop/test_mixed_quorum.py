"""A quorum of one controller of Apache Kafka and two of ours: followers replay what each leader wrote."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from interop.kafka_places import VERSIONS, KafkaPlace, fetch
from interop.kafka_tools import tool
from ottla.coordination.quorum.control_records import LeaderChangeMessage, decode_control
from ottla.records.batch import iter_headers
from ottla.storage.state_log.snapshot import control_of
from rivals.kafka_cluster import wait_for
from tests.broker.quorum_nodes import Place, new_hosts

KAFKA, OURS = 1, (2, 3)
LEADER_CHANGE = 2


@pytest.fixture(params=VERSIONS, ids=lambda version: version.release)
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[KafkaPlace, list[Place]]]:
    """Three controllers, each formatted by its own tool. None runs yet."""
    fetch(request.param)
    hosts = new_hosts(3)
    kafka = KafkaPlace(tmp_path, KAFKA, hosts[0], version=request.param)
    ours = [Place(tmp_path, id_, hosts[id_ - 1]) for id_ in OURS]
    made = [kafka, *ours]
    kafka.format_as("-I", ",".join(f"{each.node_id}@{each.address}:{each.voter.directory_id}" for each in made))
    with ExitStack() as undo:
        for each in made:
            undo.callback(each.kill)
        for each in ours:
            each.format([each.voter for each in made], request.param.release)
        yield kafka, ours


def leader(place: Place) -> int:
    """Return the leader that a node reports, or -1 if it knows none or does not respond."""
    try:
        found: int = place.describe().leader_id
    except (OSError, EOFError):
        return -1
    return found


def leaders(log: bytes) -> list[int]:
    """Return the leaders in the order of their LeaderChange records in a log."""
    found = []
    for position, header in iter_headers(log):
        for kind, value in control_of(log, position, header):
            record: Any = decode_control(kind, value or b"") if kind == LEADER_CHANGE else None
            if isinstance(record, LeaderChangeMessage):
                found.append(record.leader_id)
    return found


def is_decided_over(log: bytes) -> bool:
    """True if the log contains records other than the control records of the quorum."""
    return any(not header.is_control for _, header in iter_headers(log))


def test_ours_lead_and_kafkas_replays_their_records_without_a_warning(
    places: tuple[KafkaPlace, list[Place]],
) -> None:
    kafka, ours = places
    for each in ours:
        each.start()
    wait_for(lambda: leader(ours[0]) in OURS and leader(ours[0]) == leader(ours[1]), "ours elect one of them")
    said = tool("MetadataQuorumCommand", "--bootstrap-controller", ours[0].address, "describe", "--status")
    assert ["LeaderId:", str(leader(ours[0]))] in [line.split() for line in said.splitlines()], said
    wait_for(lambda: is_decided_over(ours[0].log), "it decides")

    kafka.start()
    wait_for(lambda: "Replayed RegisterControllerRecord" in kafka.said(), "Kafka's follows, registers and replays")
    wait_for(lambda: kafka.log == ours[0].log == ours[1].log, "the copies are the same")
    assert kafka.complaints() == []
    first = next(each for each in ours if each.node_id == leader(ours[0]))
    first.kill()
    others = [each for each in (kafka, *ours) if each is not first]
    wait_for(lambda: leaders(others[0].log)[-1] != first.node_id, "another leads")
    wait_for(lambda: others[0].log == others[1].log, "the copies are the same again")
