"""Mistakes of quorums, each planted into the real code; a history must find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ottla.coordination.quorum.events import Action, AppendControlRecords, AppendFetched, PersistElectionState
from ottla.coordination.quorum.leadership import LeaderState
from ottla.coordination.quorum.log_shape import LogShape
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import ElectionState, State
from ottla.coordination.quorum.voter_changes import Rejection
from ottla.coordination.quorum.voters import VoterSet
from tests.simulation.quorum_history import QuorumHistory
from tests.simulation.quorum_node import QuorumNode

Plant = Callable[[pytest.MonkeyPatch], None]
done = QuorumNode.do


def answers_before_the_vote_is_on_the_disk(patch: pytest.MonkeyPatch) -> None:
    """A restarted voter votes again in the same epoch."""

    def do(self: QuorumNode, wish: Action) -> None:
        if isinstance(wish, PersistElectionState):
            self.later(0.3, lambda: done(self, wish))
        else:
            done(self, wish)

    patch.setattr(QuorumNode, "do", do)
    patch.setattr(Raft, "check", lambda self: None)


def votes_for_everybody(patch: pytest.MonkeyPatch) -> None:
    """Two are elected in one epoch."""

    def may_vote_for(raft: Raft, candidate: Any, *, is_up_to_date: bool) -> bool:
        raft._voted = None
        return is_up_to_date and raft.leader_id is None

    patch.setattr(Raft, "_may_vote_for", may_vote_for)


def votes_for_logs_that_lack_something(patch: pytest.MonkeyPatch) -> None:
    """The elected leader lacks committed records."""
    patch.setattr(LogShape, "position", property(lambda self: (0, 0)))


def compares_logs_by_their_length(patch: pytest.MonkeyPatch) -> None:
    """A long log of an earlier epoch was never committed."""
    patch.setattr(LogShape, "position", property(lambda self: (0, self.end)))


def commits_with_one_too_few(patch: pytest.MonkeyPatch) -> None:
    def committed(self: LeaderState, voters: VoterSet, durable: int) -> int | None:
        ends = [durable if key.is_same(self._me) else self.progress(key).end for key in voters.keys]
        reached = sorted(ends, reverse=True)[voters.majority - 2]
        return reached if reached > self._epoch_start else None

    patch.setattr(LeaderState, "committed_end", committed)


def counts_unflushed_records_of_the_leader(patch: pytest.MonkeyPatch) -> None:
    """A leader's own disk is one of those that a majority is made of."""
    look = Raft._update_progress

    def look_at_progress(self: Raft) -> None:
        self.log = self.log._replace(durable=self.log.end)
        look(self)

    patch.setattr(Raft, "_update_progress", look_at_progress)


def fetches_on_before_the_disk_has_it(patch: pytest.MonkeyPatch) -> None:
    """A fetch states that everything before its offset is flushed."""

    def do(self: QuorumNode, wish: Action) -> None:
        done(self, wish)
        if isinstance(wish, AppendFetched):
            self.tell_of_log()

    patch.setattr(QuorumNode, "do", do)


def takes_a_parting_fetch_for_progress(patch: pytest.MonkeyPatch) -> None:
    """KAFKA-13141."""
    patch.setattr(Raft, "_is_prefix", lambda self, offset, epoch: offset <= self.log.end)


def sees_no_parting(patch: pytest.MonkeyPatch) -> None:
    """KIP-595: a fetch contains the epoch of the last record, not only the offset."""
    patch.setattr(LogShape, "divergence", lambda self, offset, epoch: None)


def lets_voters_isolated_from_the_leader_disturb(patch: pytest.MonkeyPatch) -> None:
    """KIP-996: a follower with a live leader grants no pre-vote."""
    patch.setattr(Raft, "_would_vote", lambda self: True)


def leads_without_fetches(patch: pytest.MonkeyPatch) -> None:
    """Clients of a leader that is cut off wait for ever."""
    patch.setattr(LeaderState, "has_lost_majority", lambda *_: False)


def changes_voters_again_before_the_last_change_is_committed(patch: pytest.MonkeyPatch) -> None:
    """Redpanda #17675: two majorities without a common voter."""

    def voter_request_error(raft: Raft, request: Any) -> Rejection | None:
        raft._voter_change = None
        return Rejection(6, "") if raft.leadership is None else None

    patch.setattr(Raft, "_voter_request_error", voter_request_error)
    patch.setattr(Raft, "_is_caught_up", lambda *_: True)


def takes_a_replaced_disk_for_the_old_one(patch: pytest.MonkeyPatch) -> None:
    """KIP-853: a node that restarts with an empty disk has lost its votes and its log."""
    patch.setattr(VoterSet, "has", lambda self, key: key.id in self.voters)
    patch.setattr(Raft, "_is_addressed", lambda *_: True)
    patch.setattr(QuorumHistory, "_may_lose_its_disk", lambda self, node: node.raft is not None)


def commits_records_of_earlier_epochs(patch: pytest.MonkeyPatch) -> None:
    """Records on a majority of disks may still be replaced by a log with a later last epoch (Raft, figure 8)."""

    def committed(self: LeaderState, voters: VoterSet, durable: int) -> int:
        ends = [durable if key.is_same(self._me) else self.progress(key).end for key in voters.keys]
        return sorted(ends, reverse=True)[voters.majority - 1]

    patch.setattr(LeaderState, "committed_end", committed)


def leads_on_after_a_start(patch: pytest.MonkeyPatch) -> None:
    """Its last records may be lost, and it would write others with the same offset and epoch."""
    resume = Raft._resume

    def resume_leading(self: Raft, saved: ElectionState) -> None:
        resume(self, saved)
        if saved.leader_id == self.me.id == self.leader_id and self.state is State.RESIGNED:
            self.state, self._deadline, self._unnotified = State.LEADER, float("inf"), set()
            self._leadership = LeaderState(self.me, self.log.end, self.now, self._config)
            self._do(AppendControlRecords(self.epoch, ()))

    patch.setattr(Raft, "_resume", resume_leading)


def takes_a_snapshots_place_for_the_logs(patch: pytest.MonkeyPatch) -> None:
    """A follower behind the leader's log start continues from the start, and misses the records before."""

    def needs_snapshot(self: LogShape, offset: int, epoch: int) -> bool:
        return False

    patch.setattr(LogShape, "needs_snapshot", needs_snapshot)


def applies_fetched_records_at_once(patch: pytest.MonkeyPatch) -> None:
    """Metadata above the watermark becomes state, and the next leader may have something else there."""
    handle_fetched = Raft._handle_fetched

    def fetched_and_committed(raft: Raft, partition: Any) -> None:
        partition.high_watermark = raft.log.end + len(partition.records or ())
        handle_fetched(raft, partition)

    patch.setattr(Raft, "_handle_fetched", fetched_and_committed)


PLANTED: dict[Plant, int] = {
    answers_before_the_vote_is_on_the_disk: 4,
    votes_for_everybody: 8,
    votes_for_logs_that_lack_something: 1,
    compares_logs_by_their_length: 23,
    commits_with_one_too_few: 0,
    counts_unflushed_records_of_the_leader: 0,
    fetches_on_before_the_disk_has_it: 0,
    takes_a_parting_fetch_for_progress: 9,
    sees_no_parting: 2,
    lets_voters_isolated_from_the_leader_disturb: 0,
    leads_without_fetches: 150,
    takes_a_snapshots_place_for_the_logs: 5,
    changes_voters_again_before_the_last_change_is_committed: 20,
    takes_a_replaced_disk_for_the_old_one: 7,
    commits_records_of_earlier_epochs: 30,
    leads_on_after_a_start: 6,
    applies_fetched_records_at_once: 0,
}
"""And a seed at which it was found, to be tried first."""
