"""What a replica does of itself, as time passes: it gives up waiting, asks for votes, fetches, tells whom it leads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.coordination.quorum import answering, joining, membership, wire
from ottla.coordination.quorum.state import State

if TYPE_CHECKING:
    from ottla.coordination.quorum.raft import Raft

NEVER = float("inf")


def go_on(raft: Raft) -> None:
    """Do what is due by now."""
    while is_due(raft):
        pass
    match raft.state:
        case State.UNATTACHED | State.FOLLOWER:
            fetch(raft)
        case State.PROSPECTIVE | State.CANDIDATE:
            ask_for_votes(raft)
        case State.LEADER:
            tell_strangers(raft)
            membership.look_at_change(raft)
            joining.correct_itself(raft)
            answering.look_at_waiting(raft)
        case State.RESIGNED:
            tell_of_the_end(raft)


def is_due(raft: Raft) -> bool:
    """Whether time has taken it elsewhere."""
    if raft.leadership is not None:
        lost = raft.leadership.has_lost_the_quorum(raft.voters, raft.now)
        if raft.leaving or raft.is_voted_out or raft.gives_way or lost:
            raft.resign()
            return True
        return False
    # While the log is written it is not known where it ends, which whoever is elected must know.
    if raft.now < raft.deadline or raft.leaving or raft.writing:
        return False
    if raft.state is State.RESIGNED:
        raft.become_unattached(raft.epoch + 1)
    elif not raft.is_voter:
        wait_on(raft)
    elif not raft.stands:
        raft.let_others_stand()
    elif raft.votes is not None:
        raft.give_up()
    else:
        raft.become_prospective()
    return True


def wait_on(raft: Raft) -> None:
    """Who has no vote stands for nothing, and waits for a leader for ever."""
    if raft.state in (State.PROSPECTIVE, State.CANDIDATE):
        raft.become_unattached(raft.epoch)
    raft.deadline = NEVER


def ask_for_votes(raft: Raft) -> None:
    """Ask those who have not said anything yet."""
    votes = raft.votes
    assert votes is not None
    pre_vote = raft.state is State.PROSPECTIVE
    for key in votes.voters.keys:
        if not votes.is_lost and key.id in votes.silent and raft.peers.is_ready(key.id, raft.now):
            request = wire.vote_request(raft.cluster_id, raft.me, key, raft.epoch, raft.log, pre_vote=pre_vote)
            raft.send(key.id, request)


def tell_strangers(raft: Raft) -> None:
    """Tell those who do not fetch that there is a leader, and where; and who was never met, to hear what it can do."""
    leadership, endpoints = raft.leadership, raft.voters.endpoints(raft.me.id)
    assert leadership is not None
    if raft.now < leadership.tell_at:
        return
    leadership.told(raft.now)
    unmet = [key for key in raft.voters.keys if key.id != raft.me.id and key.id not in raft.deciders]
    for key in dict.fromkeys([*leadership.strangers(raft.voters, raft.now), *unmet]):
        if raft.peers.is_ready(key.id, raft.now):
            raft.send(key.id, wire.begin_request(raft.cluster_id, raft.me.id, key, raft.epoch, endpoints))


def tell_of_the_end(raft: Raft) -> None:
    """Tell those who have not heard of it that it leads no more, and whom it would have next."""
    endpoints = raft.voters.endpoints(raft.me.id)
    for voter in sorted(raft.unaware):
        if raft.peers.is_ready(voter, raft.now):
            raft.send(voter, wire.end_request(raft.cluster_id, raft.me.id, raft.epoch, raft.successors, endpoints))


def fetch(raft: Raft) -> None:
    """Ask for what comes next, of the log or of a snapshot, if nothing is under way."""
    node, peers, config = raft.whom_to_ask, raft.peers, raft.config
    if node is None or raft.writing or peers.is_waiting or not peers.is_ready(node, raft.now):
        return
    who = raft.cluster_id, raft.me, raft.epoch
    if raft.fetching is not None:
        raft.send(node, wire.snapshot_request(*who, *raft.fetching, config.snapshot_bytes))
    elif raft.leader_id == node and (request := joining.wanted(raft)) is not None:
        raft.send(node, request)
    else:
        raft.send(node, wire.fetch_request(*who, raft.log, raft.high_watermark, config.max_wait_ms, config.max_bytes))
