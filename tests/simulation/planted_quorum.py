"""Mistakes of quorums, each planted into the real code; a history must find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.coordination.quorum import answering, hearing, membership
from ottla.coordination.quorum.events import Append, AppendControl, Persist, Wish
from ottla.coordination.quorum.leadership import Leadership
from ottla.coordination.quorum.log_shape import LogShape
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import ElectionState, State
from ottla.coordination.quorum.voters import VoterSet
from tests.simulation.quorum_history import QuorumHistory
from tests.simulation.quorum_node import QuorumNode

Plant = Callable[[pytest.MonkeyPatch], None]
done = QuorumNode.do


def answers_before_the_vote_is_on_the_disk(patch: pytest.MonkeyPatch) -> None:
    """Who is started again votes again in the same epoch."""

    def do(self: QuorumNode, wish: Wish) -> None:
        if isinstance(wish, Persist):
            self.later(0.3, lambda: done(self, wish))
        else:
            done(self, wish)

    patch.setattr(QuorumNode, "do", do)
    patch.setattr(Raft, "check", lambda self: None)


def votes_for_everybody(patch: pytest.MonkeyPatch) -> None:
    """Two are elected in one epoch."""

    def may_vote(raft: Raft, who: Any, *, up_to_date: bool) -> bool:
        raft.voted = None
        return up_to_date and raft.leader_id is None

    patch.setattr(answering, "may_vote", may_vote)


def votes_for_logs_that_lack_something(patch: pytest.MonkeyPatch) -> None:
    """Who is elected lacks what was committed."""
    patch.setattr(LogShape, "position", property(lambda self: (0, 0)))


def compares_logs_by_their_length(patch: pytest.MonkeyPatch) -> None:
    """A long log of an earlier epoch was never committed."""
    patch.setattr(answering, "position_of", lambda epoch, offset: (0, offset))
    patch.setattr(LogShape, "position", property(lambda self: (0, self.end)))


def commits_with_one_too_few(patch: pytest.MonkeyPatch) -> None:
    def committed(self: Leadership, voters: VoterSet, durable: int) -> int | None:
        ends = [durable if key.is_same(self.me) else self.progress(key).end for key in voters.keys]
        reached = sorted(ends, reverse=True)[voters.majority - 2]
        return reached if reached > self.epoch_start else None

    patch.setattr(Leadership, "committed", committed)


def counts_what_the_leader_has_not_forced(patch: pytest.MonkeyPatch) -> None:
    """A leader's own disk is one of those that a majority is made of."""
    look = Raft.look_at_progress

    def look_at_progress(self: Raft) -> None:
        self.log = self.log._replace(durable=self.log.end)
        look(self)

    patch.setattr(Raft, "look_at_progress", look_at_progress)


def fetches_on_before_the_disk_has_it(patch: pytest.MonkeyPatch) -> None:
    """A fetch says that everything before its offset is on the disk."""

    def do(self: QuorumNode, wish: Wish) -> None:
        done(self, wish)
        if isinstance(wish, Append):
            self.tell_of_log()

    patch.setattr(QuorumNode, "do", do)


def takes_a_parting_fetch_for_progress(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-13141."""
    patch.setattr(answering, "is_part_of", lambda log, offset, epoch: offset <= log.end)


def sees_no_parting(patch: pytest.MonkeyPatch) -> None:
    """KIP-595: a fetch tells the epoch of the last record, and not the offset alone."""
    patch.setattr(LogShape, "parting", lambda self, offset, epoch: None)


def lets_who_is_cut_off_from_the_leader_disturb(patch: pytest.MonkeyPatch) -> None:
    """KIP-996: whoever hears the leader has no vote to promise."""
    patch.setattr(answering, "would_vote", lambda raft: True)


def leads_on_without_being_heard(patch: pytest.MonkeyPatch) -> None:
    """Clients of a leader that is cut off wait for ever."""
    patch.setattr(Leadership, "has_lost_the_quorum", lambda *_: False)


def changes_voters_again_before_the_last_change_is_committed(patch: pytest.MonkeyPatch) -> None:
    """Redpanda #17675: two majorities that have nobody in common."""

    def refusal(raft: Raft, request: Any) -> membership.Refusal | None:
        raft.change = None
        return membership.Refusal(6, "") if raft.leadership is None else None

    patch.setattr(membership, "refusal", refusal)
    patch.setattr(membership, "is_caught_up", lambda *_: True)


def takes_a_replaced_disk_for_the_old_one(patch: pytest.MonkeyPatch) -> None:
    """KIP-853: a node that comes back with an empty disk has forgotten its votes, and what it had."""
    patch.setattr(VoterSet, "has", lambda self, key: key.id in self.voters)
    patch.setattr(answering, "is_me", lambda *_: True)
    patch.setattr(QuorumHistory, "_may_lose_its_disk", lambda self, node: node.raft is not None)


def commits_records_of_earlier_epochs(patch: pytest.MonkeyPatch) -> None:
    """What is on most disks may still give way to a log that ends in a later epoch (Raft, figure 8)."""

    def committed(self: Leadership, voters: VoterSet, durable: int) -> int:
        ends = [durable if key.is_same(self.me) else self.progress(key).end for key in voters.keys]
        return sorted(ends, reverse=True)[voters.majority - 1]

    patch.setattr(Leadership, "committed", committed)


def leads_on_after_a_start(patch: pytest.MonkeyPatch) -> None:
    """What it wrote last may be lost, and it would write something else with the same offset and epoch."""
    begin = Raft._begin

    def begin_leading(self: Raft, saved: ElectionState) -> None:
        begin(self, saved)
        if saved.leader_id == self.me.id == self.leader_id and self.state is State.RESIGNED:
            self.state, self.deadline, self.unaware = State.LEADER, float("inf"), set()
            self.leadership = Leadership(self.me, self.log.end, self.now, self.config)
            self.do(AppendControl(self.epoch, ()))

    patch.setattr(Raft, "_begin", begin_leading)


def takes_a_snapshots_place_for_the_logs(patch: pytest.MonkeyPatch) -> None:
    """Who is behind the start of the leader's log is sent on from the start, and misses what was before."""

    def needs_snapshot(self: LogShape, offset: int, epoch: int) -> bool:
        return False

    patch.setattr(LogShape, "needs_snapshot", needs_snapshot)


def takes_what_it_was_sent_for_committed(patch: pytest.MonkeyPatch) -> None:
    """Metadata above the watermark becomes state, and the next leader may have something else there."""
    fetched = hearing.fetched

    def fetched_and_committed(raft: Raft, partition: Any) -> None:
        partition.high_watermark = raft.log.end + len(partition.records or ())
        fetched(raft, partition)

    patch.setattr(hearing, "fetched", fetched_and_committed)


PLANTED: dict[Plant, int] = {
    answers_before_the_vote_is_on_the_disk: 4,
    votes_for_everybody: 8,
    votes_for_logs_that_lack_something: 1,
    compares_logs_by_their_length: 23,
    commits_with_one_too_few: 0,
    counts_what_the_leader_has_not_forced: 0,
    fetches_on_before_the_disk_has_it: 0,
    takes_a_parting_fetch_for_progress: 9,
    sees_no_parting: 2,
    lets_who_is_cut_off_from_the_leader_disturb: 0,
    leads_on_without_being_heard: 150,
    takes_a_snapshots_place_for_the_logs: 5,
    changes_voters_again_before_the_last_change_is_committed: 20,
    takes_a_replaced_disk_for_the_old_one: 7,
    commits_records_of_earlier_epochs: 30,
    leads_on_after_a_start: 6,
    takes_what_it_was_sent_for_committed: 0,
}
"""And a seed at which it was found, to be tried first."""
