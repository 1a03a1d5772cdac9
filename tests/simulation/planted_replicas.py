"""Mistakes that implementations of replication have made, each to be planted and found by the histories."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from ottla.broker.replica_manager.fetch_session import FetchedPartition, FetchSession, ReportedState
from ottla.coordination.replication import epochs
from ottla.coordination.replication.assignment import LiveBrokers, ReplicaAssignment
from ottla.coordination.replication.follower import FetchFrom
from ottla.coordination.replication.leader import Leader, Proposal, ProposalRejection
from tests.simulation.replica_broker import Answer, ReplicaBroker
from tests.simulation.replica_controller import Controller, Image
from tests.simulation.replica_log import ReplicaLog

Plant = Callable[[pytest.MonkeyPatch], None]


def cuts_at_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """KIP-101: the watermark of a follower lags behind what was acknowledged."""
    follow = ReplicaBroker._follow

    def cut_and_follow(self: ReplicaBroker, assignment: ReplicaAssignment) -> None:
        follow(self, assignment)
        assert self.follower is not None
        self.log.truncate(min(self.log.end, self.follower.high_watermark))

    patch.setattr(ReplicaBroker, "_follow", cut_and_follow)
    patch.setattr(epochs, "find_divergence", lambda *_: None)


def begins_no_epoch_when_it_leads(patch: pytest.MonkeyPatch) -> None:
    """KIP-279: an epoch without a batch is an epoch, too; without it the previous leader's epoch appears to continue."""

    def lead(self: ReplicaBroker, assignment: ReplicaAssignment) -> None:
        assert isinstance(self.log, ReplicaLog)
        started = self.log.starts[:]
        plain(self, assignment)
        self.log.starts = started or self.log.starts

    plain = ReplicaBroker._lead
    patch.setattr(ReplicaBroker, "_lead", lead)
    patch.setattr(epochs, "find_divergence", parts_by_the_end_alone)


def parts_by_the_end_alone(starts: Any, log_end: int, offset: int, last_epoch: int) -> epochs.EpochEnd | None:
    end = epochs.end_of(starts, last_epoch, log_end)
    return end if end != epochs.UNKNOWN_END and end.offset < offset else None


def takes_a_parting_fetch_for_progress(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-13141."""
    answer = ReplicaBroker._answer

    def count_and_answer(self: ReplicaBroker, who: int, asked: FetchFrom, broker_epoch: int | None) -> Answer | None:
        leader = self.leader
        if (
            leader is not None
            and broker_epoch is not None
            and asked.leader_epoch == leader.assignment.leader_epoch
            and asked.offset <= self.log.end
        ):
            leader.fetch(who, asked.offset, broker_epoch, self.world.now)
            self.look_at_members()
        return answer(self, who, asked, broker_epoch)

    patch.setattr(ReplicaBroker, "_answer", count_and_answer)


def commits_by_the_committed_set_alone(patch: pytest.MonkeyPatch) -> None:
    """Members of a proposed set may be in sync already, by the controller's word."""
    patch.setattr(Leader, "_is_awaited", lambda self, id_, *_: id_ in self.assignment.in_sync)


def lets_replicas_behind_the_epoch_start_join(patch: pytest.MonkeyPatch) -> None:
    """The high watermark of a new leader is behind the acknowledged records."""
    patch.setattr(Leader, "_is_level", lambda self, one: one.end >= self.high_watermark)


def lets_restarted_replicas_join(patch: pytest.MonkeyPatch) -> None:
    """KIP-903: it fetched before it lost its data."""
    patch.setattr(LiveBrokers, "can_join", lambda self, broker, epoch: broker in self.epochs)


def commits_while_too_few_are_in_sync(patch: pytest.MonkeyPatch) -> None:
    """KIP-966: the last one standing loses its disk."""
    patch.setattr(Leader, "has_quorum", property(lambda self: True))


def serves_uncommitted_records(patch: pytest.MonkeyPatch) -> None:
    """A leader that was replaced without notice has batches that no other replica has."""

    def read(self: ReplicaBroker, offset: int) -> int | None:
        return self.log.batches[offset][1] if self.leader is not None and offset < self.log.end else None

    patch.setattr(ReplicaBroker, "read", read)


def takes_a_stale_proposal(patch: pytest.MonkeyPatch) -> None:
    """A proposal made before the last change restores a removed ISR member."""
    alter = Controller.alter

    def alter_anyhow(self: Controller, leader: int, proposal: Proposal) -> ProposalRejection | None:
        now = self.assignment
        fresh = Proposal(now.leader_epoch, now.partition_epoch, proposal.in_sync, proposal.broker_epochs)
        return alter(self, leader, fresh)

    patch.setattr(Controller, "alter", alter_anyhow)


def answers_before_it_is_committed(patch: pytest.MonkeyPatch) -> None:
    """A coordinator does not wait for the high watermark: acknowledged records are lost with the leader."""
    produce = ReplicaBroker.produce

    def produce_and_answer(self: ReplicaBroker, value: int) -> None:
        produce(self, value)
        for offset, waiting in self.waiting:
            self.history.acknowledged(offset, waiting)

    patch.setattr(ReplicaBroker, "produce", produce_and_answer)


def draws_a_new_directory(patch: pytest.MonkeyPatch) -> None:
    """It is let into the in-sync set, and when it is to lead the controllers wait for another disk."""
    start = ReplicaBroker.start

    def start_elsewhere(self: ReplicaBroker, *, clean: bool) -> None:
        self.directory += 1
        start(self, clean=clean)

    patch.setattr(ReplicaBroker, "start", start_elsewhere)
    patch.setattr(ReplicaBroker, "_tell_directory", lambda self: None)


def ignores_changed_partitions(patch: pytest.MonkeyPatch) -> None:
    """A session reads only the partitions that a request names: later writes are never sent."""
    patch.setattr(ReplicaBroker, "note_news", lambda self: None)


def counts_a_quiet_follower_as_caught_up(patch: pytest.MonkeyPatch) -> None:
    """A replica removed from the ISR during its pending fetch must fetch again, but sends nothing while it lacks
    nothing.
    """
    answered = FetchSession.handle_response

    def answer(self: FetchSession, found: Iterable[tuple[FetchedPartition, ReportedState]]) -> None:
        found = list(found)
        for partition, _ in found:
            partition.lacks = False
        answered(self, found)

    patch.setattr(FetchSession, "handle_response", answer)


def sends_no_notice_of_isr_changes(patch: pytest.MonkeyPatch) -> None:
    """The metadata remove a replica from the ISR: it must fetch once more before it may return."""
    hear = ReplicaBroker.hear

    def hear_in_silence(self: ReplicaBroker, image: Image) -> None:
        with pytest.MonkeyPatch.context() as still:
            still.setattr(ReplicaBroker, "note_news", lambda self: None)
            hear(self, image)

    patch.setattr(ReplicaBroker, "hear", hear_in_silence)


PLANTED: dict[Plant, int] = {
    cuts_at_the_high_watermark: 0,
    begins_no_epoch_when_it_leads: 27,
    takes_a_parting_fetch_for_progress: 8,
    commits_by_the_committed_set_alone: 1,
    lets_replicas_behind_the_epoch_start_join: 26,
    lets_restarted_replicas_join: 67,
    commits_while_too_few_are_in_sync: 0,
    serves_uncommitted_records: 1,
    takes_a_stale_proposal: 18,
    answers_before_it_is_committed: 0,
    draws_a_new_directory: 1,
    ignores_changed_partitions: 0,
    counts_a_quiet_follower_as_caught_up: 160,
    sends_no_notice_of_isr_changes: 67,
}
"""And a seed at which it was found, to be tried first."""
