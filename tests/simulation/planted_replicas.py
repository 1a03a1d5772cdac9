"""Mistakes that implementations of replication have made, each to be planted and found by the histories."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from ottla.broker.fetching.fetch_session import FetchedPartition, FetchSession, Told
from ottla.coordination.replication import epochs
from ottla.coordination.replication.assignment import Assignment, LiveBrokers
from ottla.coordination.replication.follower import FetchFrom
from ottla.coordination.replication.leader import Leader, Proposal, Refusal
from tests.simulation.replica_broker import Answer, ReplicaBroker
from tests.simulation.replica_controller import Controller, Image
from tests.simulation.replica_log import ReplicaLog

Plant = Callable[[pytest.MonkeyPatch], None]


def cuts_at_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """KIP-101: the watermark of a follower lags behind what was acknowledged."""
    follow = ReplicaBroker._follow

    def cut_and_follow(self: ReplicaBroker, assignment: Assignment) -> None:
        follow(self, assignment)
        assert self.follower is not None
        self.log.truncate(min(self.log.end, self.follower.high_watermark))

    patch.setattr(ReplicaBroker, "_follow", cut_and_follow)
    patch.setattr(epochs, "parting", lambda *_: None)


def begins_no_epoch_when_it_leads(patch: pytest.MonkeyPatch) -> None:
    """KIP-279: an epoch without a batch is an epoch, too; without it the leader before seems to go on."""

    def lead(self: ReplicaBroker, assignment: Assignment) -> None:
        assert isinstance(self.log, ReplicaLog)
        started = self.log.starts[:]
        plain(self, assignment)
        self.log.starts = started or self.log.starts

    plain = ReplicaBroker._lead
    patch.setattr(ReplicaBroker, "_lead", lead)
    patch.setattr(epochs, "parting", parts_by_the_end_alone)


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


def lets_who_is_behind_the_epochs_start_join(patch: pytest.MonkeyPatch) -> None:
    """A new leader's watermark lies behind what was acknowledged."""
    patch.setattr(Leader, "_is_level", lambda self, one: one.end >= self.high_watermark)


def lets_who_was_started_again_join(patch: pytest.MonkeyPatch) -> None:
    """KIP-903: it fetched before it lost its data."""
    patch.setattr(LiveBrokers, "may_join", lambda self, broker, epoch: broker in self.epochs)


def commits_while_too_few_are_in_sync(patch: pytest.MonkeyPatch) -> None:
    """KIP-966: the last one standing loses its disk."""
    patch.setattr(Leader, "has_quorum", property(lambda self: True))


def serves_what_is_not_committed(patch: pytest.MonkeyPatch) -> None:
    """A leader that was replaced without knowing it has batches that nobody else has."""

    def read(self: ReplicaBroker, offset: int) -> int | None:
        return self.log.batches[offset][1] if self.leader is not None and offset < self.log.end else None

    patch.setattr(ReplicaBroker, "read", read)


def takes_a_stale_proposal(patch: pytest.MonkeyPatch) -> None:
    """A proposal made before the last change puts back who was taken out."""
    alter = Controller.alter

    def alter_anyhow(self: Controller, leader: int, proposal: Proposal) -> Refusal | None:
        now = self.assignment
        fresh = Proposal(now.leader_epoch, now.partition_epoch, proposal.in_sync, proposal.broker_epochs)
        return alter(self, leader, fresh)

    patch.setattr(Controller, "alter", alter_anyhow)


def answers_before_it_is_committed(patch: pytest.MonkeyPatch) -> None:
    """As a coordinator that does not wait for the watermark: what it answered is gone with the leader."""
    produce = ReplicaBroker.produce

    def produce_and_answer(self: ReplicaBroker, value: int) -> None:
        produce(self, value)
        for offset, waiting in self.waiting:
            self.history.acknowledged(offset, waiting)

    patch.setattr(ReplicaBroker, "produce", produce_and_answer)


def draws_its_directory_anew(patch: pytest.MonkeyPatch) -> None:
    """It is let into the in-sync set, and when it is to lead the controllers wait for another disk."""
    start = ReplicaBroker.start

    def start_elsewhere(self: ReplicaBroker, *, clean: bool) -> None:
        self.directory += 1
        start(self, clean=clean)

    patch.setattr(ReplicaBroker, "start", start_elsewhere)
    patch.setattr(ReplicaBroker, "_tell_directory", lambda self: None)


def looks_at_nothing_that_has_news(patch: pytest.MonkeyPatch) -> None:
    """Of a session's partitions those alone that a request names: what is written meanwhile is never sent."""
    patch.setattr(ReplicaBroker, "note_news", lambda self: None)


def takes_a_quiet_follower_for_heard(patch: pytest.MonkeyPatch) -> None:
    """Whoever was taken out of sync while its fetch waited has to fetch again, and says nothing while it lacks nothing."""
    answered = FetchSession.answered

    def answer(self: FetchSession, found: Iterable[tuple[FetchedPartition, Told]]) -> None:
        found = list(found)
        for partition, _ in found:
            partition.lacks = False
        answered(self, found)

    patch.setattr(FetchSession, "answered", answer)


def is_told_nothing_of_new_members(patch: pytest.MonkeyPatch) -> None:
    """The metadata say that somebody is out of sync: it has to fetch once more before it may come back."""
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
    lets_who_is_behind_the_epochs_start_join: 26,
    lets_who_was_started_again_join: 67,
    commits_while_too_few_are_in_sync: 0,
    serves_what_is_not_committed: 1,
    takes_a_stale_proposal: 18,
    answers_before_it_is_committed: 0,
    draws_its_directory_anew: 1,
    looks_at_nothing_that_has_news: 0,
    takes_a_quiet_follower_for_heard: 160,
    is_told_nothing_of_new_members: 67,
}
"""And a seed at which it was found, to be tried first."""
