"""The active controller over a log on the disk: what it decides counts when most voters have it, and not before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.controller.active_controller import BATCH_BYTES, ActiveController, load_metadata
from ottla.broker.controller.quorum_log import QuorumLog
from ottla.broker.event_loop.timers import Timers
from ottla.clock import ManualClock
from ottla.coordination.cluster.features import BROKER_LEVELS
from ottla.coordination.cluster.records import FeatureLevelRecord
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.events import NO_RANDOM_VALUES, ControllerRequest, RandomValues
from ottla.coordination.quorum.control_records import KRaftVersionRecord
from ottla.errors import ErrorCode, KafkaError
from ottla.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.protocol.messages.broker_registration import Feature
from ottla.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from ottla.records.batch import iter_headers
from tests.broker.test_quorum_log import format_folder, opened
from tests.coordination.controller.cluster import TOPIC, registration


class Term:
    """One node's, by hand: time, what is committed, and what was answered."""

    def __init__(self, log: QuorumLog, epoch: int = 1) -> None:
        self.log, self.clock, self.timers = log, ManualClock(), Timers()
        self.answers: list[Any] = []
        log.append_control(epoch, [KRaftVersionRecord(0, 1)])
        self.controller = ActiveController(
            log, epoch, ControllerConfig("c", session_timeout=9.0), self.clock, self.timers
        )

    def ask(self, request: Any, chance: RandomValues = NO_RANDOM_VALUES) -> None:
        self.controller.submit(ControllerRequest(1, request, chance), self.answers.append)

    def register(self, broker: int) -> None:
        self.ask(registration(broker, features=[Feature(name, *levels) for name, levels in BROKER_LEVELS.items()]))

    def commit(self) -> None:
        self.controller.handle_commit(self.log.log.end_offset)

    def let_in(self, broker: int) -> int:
        """Register a broker, and have it beat once; its epoch."""
        self.register(broker)
        self.commit()
        epoch: int = self.answers[-1].broker_epoch
        self.beat(broker, epoch)
        self.commit()
        return epoch

    def beat(self, broker: int, epoch: int, knows: int | None = None) -> None:
        self.ask(BrokerHeartbeatRequest(broker, epoch, self.log.log.end_offset - 1 if knows is None else knows))

    def fenced(self) -> list[int]:
        return [number for number, each in self.controller.machine.metadata.registrations.items() if each.fenced]

    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.run(self.clock.monotonic())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    format_folder(tmp_path)
    return tmp_path


@pytest.fixture
def log(folder: Path) -> Iterator[QuorumLog]:
    with opened(folder) as log:
        yield log


def test_a_response_waits_until_its_records_are_committed(log: QuorumLog) -> None:
    term = Term(log)
    term.register(1)
    assert term.answers == []
    term.controller.handle_commit(log.log.end_offset - 1)
    assert term.answers == []
    term.commit()
    assert term.answers[0].broker_epoch == log.log.end_offset - 1, "the offset of the registration"


def test_a_response_without_records_waits_for_the_commit_of_the_records_it_depends_on(log: QuorumLog) -> None:
    term = Term(log)
    epoch = term.let_in(1)
    term.register(2)
    term.beat(1, epoch)
    answered = len(term.answers)
    term.commit()
    assert len(term.answers) == answered + 2


def test_waiting_requests_are_failed_when_the_controller_resigns(log: QuorumLog) -> None:
    term = Term(log)
    term.register(1)
    term.controller.retire()
    assert [(type(each), each.code) for each in term.answers] == [(KafkaError, ErrorCode.NOT_CONTROLLER)]
    term.commit()
    assert len(term.answers) == 1


def test_a_silent_broker_is_fenced_by_the_clock_and_not_after_the_term(log: QuorumLog) -> None:
    term = Term(log)
    term.let_in(1)
    term.wait(8.9)
    assert term.fenced() == []
    term.wait(0.2)
    assert term.fenced() == [1]
    end = log.log.end_offset
    term.controller.retire()
    term.wait(100)
    assert log.log.end_offset == end


def test_the_next_term_has_the_records_of_the_log_and_no_truncated_ones(log: QuorumLog) -> None:
    term = Term(log)
    term.let_in(1)
    kept = log.log.end_offset
    term.ask(CreateTopicsRequest([CreatableTopic("t", 2, 1)]), RandomValues([TOPIC], 1))
    term.controller.retire()
    assert list(term.controller.machine.metadata.topics) == ["t"]
    log.truncate(kept)
    again = Term(log, epoch=3)
    assert again.controller.machine.metadata.topics == {}
    assert list(again.controller.machine.metadata.registrations) == [1]


def test_the_next_term_continues_after_a_restart_of_the_process(folder: Path) -> None:
    with opened(folder) as log:
        term = Term(log)
        epoch = term.let_in(1)
        term.ask(CreateTopicsRequest([CreatableTopic("t", 2, 1)]), RandomValues([TOPIC], 1))
        records = list(term.controller.machine.metadata.records())
    with opened(folder) as log:
        metadata, registered_at = load_metadata(log)
        assert list(metadata.records()) == records
        assert registered_at == {1: epoch}
        term = Term(log, epoch=2)
        term.beat(1, epoch)
        term.commit()
        assert not term.answers[0].is_fenced


def test_the_log_of_a_new_cluster_starts_with_its_feature_levels(log: QuorumLog) -> None:
    term = Term(log)
    metadata, _ = load_metadata(log)
    assert metadata.features == term.controller.machine.metadata.features != {}
    assert log.shape().holds_metadata


def test_a_decision_of_many_records_is_written_in_batches_of_limited_size(log: QuorumLog) -> None:
    term = Term(log)
    term.let_in(1)
    begin = log.log.end_offset
    term.ask(CreateTopicsRequest([CreatableTopic("t", 10_000, 1)]), RandomValues([TOPIC], 1))
    headers = [header for _, header in iter_headers(log.read(begin, 1 << 30))]
    assert len(headers) == 2
    assert sum(header.count for header in headers) == 10_001
    assert all(header.size_bytes <= BATCH_BYTES for header in headers)
    metadata, _ = load_metadata(log)
    assert list(metadata.records()) == list(term.controller.machine.metadata.records())


def test_an_idle_controller_writes_no_op_records(log: QuorumLog) -> None:
    term = Term(log)
    end, features = log.log.end_offset, dict(term.controller.machine.metadata.features)
    term.wait(0.4)
    assert log.log.end_offset == end
    term.wait(0.2)
    assert log.log.end_offset == end + 1
    assert term.controller.machine.metadata.features == features


def test_preferred_leaders_are_elected_periodically(log: QuorumLog) -> None:
    term = Term(log)
    epochs = {broker: term.let_in(broker) for broker in (1, 2)}
    topic = CreatableTopic("t", -1, -1, [CreatableReplicaAssignment(0, [1, 2])])
    term.ask(CreateTopicsRequest([topic]), RandomValues([TOPIC], 1))

    def state() -> Any:
        return term.controller.machine.metadata.topics["t"].partitions[0]

    term.beat(2, epochs[2])
    term.wait(8.0)
    term.beat(2, epochs[2])
    term.wait(2.0)
    assert (state().leader, term.fenced()) == (2, [1])
    term.beat(1, epochs[1])
    ask = AlterPartitionRequest(
        2,
        epochs[2],
        [
            RequestTopicData(
                TOPIC,
                [
                    RequestPartitionData(
                        0,
                        state().leader_epoch,
                        [],
                        [BrokerState(2, epochs[2]), BrokerState(1, epochs[1])],
                        0,
                        state().partition_epoch,
                    )
                ],
            )
        ],
    )
    term.ask(ask)
    assert (set(state().isr), state().leader) == ({1, 2}, 2)
    for _ in range(60):
        for broker, epoch in epochs.items():
            term.beat(broker, epoch)
        term.wait(5.0)
    assert state().leader == 1


def test_in_the_next_term_a_broker_has_caught_up_once_it_has_replayed_its_own_registration(
    log: QuorumLog,
) -> None:
    before = Term(log)
    epoch = before.let_in(1)
    before.register(2)
    before.commit()

    term = Term(log, epoch=2)
    term.beat(1, epoch, knows=epoch)
    term.beat(1, epoch, knows=epoch - 1)
    term.commit()

    assert [each.is_caught_up for each in term.answers] == [True, False]


def test_a_new_cluster_starts_with_the_records_it_was_formatted_with(log: QuorumLog) -> None:
    log.append_control(1, [KRaftVersionRecord(0, 1)])
    reported = [FeatureLevelRecord("metadata.version", 29), FeatureLevelRecord("group.version", 1)]
    config = ControllerConfig("c", bootstrap=reported)
    controller = ActiveController(log, 1, config, ManualClock(), Timers())
    assert controller.machine.metadata.features == {"metadata.version": 29, "group.version": 1}
