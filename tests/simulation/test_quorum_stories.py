"""Transcripts of a quorum: no message is lost, and every fault is explicit."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from ottla.coordination.quorum import wire
from ottla.coordination.quorum.state import State
from ottla.errors import ErrorCode
from ottla.protocol.codec import Reader, Writer
from ottla.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse, Listener
from ottla.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from ottla.protocol.messages.fetch import FetchRequest, FetchResponse
from ottla.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from ottla.protocol.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from ottla.protocol.plan import plan_of
from ottla.protocol.schema import Message
from tests.protocol.values import tidy
from tests.simulation import quorum_node
from tests.simulation.quorum_history import QuorumHistory, presence_of
from tests.simulation.quorum_node import CLUSTER, QuorumNode

OfVoters = (
    AddRaftVoterRequest
    | AddRaftVoterResponse
    | RemoveRaftVoterRequest
    | RemoveRaftVoterResponse
    | UpdateRaftVoterRequest
    | UpdateRaftVoterResponse
)
Whole = OfVoters | ApiVersionsRequest | ApiVersionsResponse
"""Messages without a partition."""


class Story(QuorumHistory):
    """A quorum to which nothing happens by itself."""

    def __init__(self, count: int = 3, *, observed: bool = False, seed: int = 1) -> None:
        super().__init__(seed, count, observed=observed)
        self.loss, self.slow, self.nerves = 0.0, 0.01, 0.0
        for node in self.nodes.values():
            node.start()
        self.world.story.clear()

    def until(self, what: Callable[[], bool]) -> None:
        """Run until the condition holds, a minute at most."""
        for _ in range(6000):
            if what():
                return
            self.world.run_until(self.world.now + 0.01)
            self.check_logs()
        raise AssertionError(f"it does not come to that:\n{self.world.transcript()}")

    def until_anybody_is(self, state: State) -> QuorumNode:
        self.until(lambda: any(node.raft is not None and node.raft.state is state for node in self.nodes.values()))
        return next(node for node in self.nodes.values() if node.raft is not None and node.raft.state is state)

    def wait(self, span: float) -> None:
        until = self.world.now + span
        self.until(lambda: self.world.now >= until)

    def elect(self) -> QuorumNode:
        """Return the leader, once all nodes know it and have its first record."""
        self.until(lambda: any(node.leads for node in self.nodes.values()))
        self.wait(1.0)
        return next(node for node in self.nodes.values() if node.leads)

    def request(self, node: QuorumNode, request: Message) -> None:
        """Send a change of voters, and wait for the response."""
        heard: list[Any] = []
        node.asked(request, heard.append)
        self.until(lambda: bool(heard))
        self.world.say("answer", ErrorCode(heard[0].error_code).name)

    def cut_off(self, node: QuorumNode) -> None:
        others = [id_ for id_ in self.nodes if id_ != node.id]
        self.cut = {(node.id, other) for other in others} | {(other, node.id) for other in others}
        self.world.say("network", "cuts off", node.id)

    def mend(self) -> None:
        self.cut = set()
        self.world.say("network", "is whole")

    def take_lines(self) -> list[str]:
        """Return the events since the last call."""
        lines = [f"{who} {' '.join(map(str, what))}" for _, who, what in self.world.story]
        self.world.story.clear()
        return [line.removeprefix("node ") for line in lines]


class Sluggish(Story):
    """Every message takes most of an election's timeout."""

    def _carry(self, sender: int, receiver: int, arrive: Callable[[], None]) -> None:
        self.nodes[receiver].later(0.4, arrive)


def lines(text: str) -> list[str]:
    return dedent(text).strip().splitlines()


def test_the_voter_that_waited_longest_requests_votes_first_and_is_elected() -> None:
    quorum = Story()
    quorum.elect()
    assert quorum.take_lines() == lines("""
        2 is prospective in 0
        2 is candidate in 1
        1 is unattached in 1
        3 is unattached in 1
        2 is leader in 1
        3 is follower in 1
        1 is follower in 1
    """)
    leader = quorum.nodes[2].log
    assert [type(entry.value).__name__ for entry in leader.entries] == [
        "LeaderChangeMessage",
        "KRaftVersionRecord",
        "VotersRecord",
    ]
    assert len(quorum.committed) == 3


def test_of_two_simultaneous_candidates_one_withdraws() -> None:
    quorum = Story(seed=31)
    quorum.elect()
    assert quorum.take_lines() == lines("""
        2 is prospective in 0
        1 is prospective in 0
        2 is candidate in 1
        1 is candidate in 1
        3 is unattached in 1
        2 is leader in 1
        3 is follower in 1
        1 is follower in 1
    """)


def test_a_leader_that_leaves_has_a_successor_at_once() -> None:
    quorum = Story()
    leader = quorum.elect()
    quorum.take_lines()
    left = quorum.world.now
    leader.leave()
    quorum.until(lambda: any(node.leads for node in quorum.nodes.values()))
    assert quorum.world.now - left < 0.1
    assert quorum.take_lines() == lines("""
        2 leaves
        2 is resigned in 1
        1 is prospective in 1
        1 is candidate in 2
        3 is unattached in 2
        1 is leader in 2
        2 is unattached in 2
        2 is follower in 2
    """)


def story_after_leave_in(state: State) -> Story:
    """Crash the leader of five; the first node to enter the state leaves, until there is a leader again."""
    quorum = Story(5)
    quorum.elect().crash()
    leaving = quorum.until_anybody_is(state)
    quorum.take_lines()
    leaving.leave()
    quorum.until(lambda: any(node.leads for node in quorum.nodes.values()))
    return quorum


def test_a_voter_that_leaves_during_its_pre_vote_is_no_candidate() -> None:
    quorum = story_after_leave_in(State.PROSPECTIVE)
    assert quorum.take_lines() == lines("""
        1 leaves
        1 is follower in 1
        3 is candidate in 2
        5 is unattached in 2
        1 is unattached in 2
        4 is candidate in 2
        3 is leader in 2
        1 is follower in 2
        5 is follower in 2
    """)


def test_a_leaving_candidate_waits_for_its_votes_and_resigns_after_its_election() -> None:
    quorum = story_after_leave_in(State.CANDIDATE)
    assert quorum.take_lines() == lines("""
        3 leaves
        3 is resigned in 2
        1 is prospective in 2
        5 is follower in 2
        4 is follower in 2
        1 is candidate in 3
        3 is unattached in 3
        4 is unattached in 3
        5 is unattached in 3
        1 is leader in 3
    """)


def test_a_leader_with_an_ended_process_is_not_waited_for() -> None:
    quorum = Story()
    leader = quorum.elect()
    quorum.take_lines()
    died, quorum.tells_gone = quorum.world.now, lambda number: True  # type: ignore[method-assign]
    leader.be_killed()
    quorum.until(lambda: any(node.leads for node in quorum.nodes.values()))
    assert quorum.world.now - died < 0.5, "an election without it would begin after 2 s"


def test_an_isolated_leader_resigns_and_its_uncommitted_records_are_truncated() -> None:
    quorum = Story()
    leader = quorum.elect()
    quorum.take_lines()
    quorum.cut_off(leader)
    quorum.client()
    alone = leader.log.end
    quorum.until(lambda: not leader.leads)
    quorum.client()
    quorum.mend()
    quorum.wait(4.0)
    assert quorum.take_lines() == lines(f"""
        network cuts off 2
        1 is prospective in 1
        3 is prospective in 1
        3 is candidate in 2
        1 is unattached in 2
        3 is leader in 2
        1 is follower in 2
        2 is resigned in 1
        network is whole
        2 is unattached in 2
        2 is follower in 2
        2 cuts its log at {alone - 1}
    """)
    assert leader.log.entries == quorum.elect().log.entries


def test_a_voter_that_returns_from_isolation_disturbs_no_leader() -> None:
    quorum = Story()
    leader = quorum.elect()
    quorum.take_lines()
    quorum.cut_off(quorum.nodes[1])
    quorum.wait(6.0)
    quorum.mend()
    quorum.wait(3.0)
    assert quorum.take_lines() == lines("""
        network cuts off 1
        1 is prospective in 1
        1 is follower in 1
        1 is prospective in 1
        network is whole
        1 is follower in 1
    """)
    assert leader.leads


def test_a_caught_up_node_may_become_a_voter_and_a_leader_may_remove_itself() -> None:
    quorum = Story(observed=True)
    leader, ninth = quorum.elect(), quorum.nodes[9]
    quorum.take_lines()
    quorum.request(leader, AddRaftVoterRequest(CLUSTER, 1000, 9, ninth.key.directory_id))
    quorum.wait(0.1)
    assert {voters_of(node) for node in quorum.nodes.values()} == {frozenset({1, 2, 3, 9})}
    quorum.request(leader, RemoveRaftVoterRequest(CLUSTER, leader.id, leader.key.directory_id))
    quorum.wait(1.5)
    assert quorum.take_lines() == lines("""
        answer NONE
        2 is resigned in 1
        1 is prospective in 1
        answer NONE
        1 is follower in 1
        9 is prospective in 1
        9 is candidate in 2
        3 is unattached in 2
        1 is unattached in 2
        9 is leader in 2
        1 is follower in 2
        3 is follower in 2
    """)
    assert {voters_of(node) for node in quorum.nodes.values()} == {frozenset({1, 3, 9})}


def test_invalid_voter_changes_are_rejected_with_kafkas_errors() -> None:
    quorum = Story(observed=True)
    leader, ninth = quorum.elect(), quorum.nodes[9]
    follower = next(node for node in quorum.nodes.values() if node is not leader)
    add = AddRaftVoterRequest(CLUSTER, 1000, 9, ninth.key.directory_id)
    quorum.take_lines()
    quorum.request(follower, add)
    quorum.request(leader, AddRaftVoterRequest("another", 1000, 9, ninth.key.directory_id))
    quorum.request(leader, AddRaftVoterRequest(CLUSTER, 1000, 9))
    quorum.request(leader, AddRaftVoterRequest(CLUSTER, 1000, follower.id, ninth.key.directory_id))
    quorum.request(leader, AddRaftVoterRequest(CLUSTER, 1000, 10, ninth.key.directory_id))
    quorum.request(leader, RemoveRaftVoterRequest(CLUSTER, 9, ninth.key.directory_id))
    assert quorum.take_lines() == lines("""
        answer NOT_LEADER_OR_FOLLOWER
        answer INCONSISTENT_CLUSTER_ID
        answer INVALID_REQUEST
        answer DUPLICATE_VOTER
        answer REQUEST_TIMED_OUT
        answer VOTER_NOT_FOUND
    """)


def test_a_node_becomes_a_voter_with_the_directory_of_its_log_and_a_known_listener() -> None:
    quorum = Story(observed=True)
    leader, ninth = quorum.elect(), quorum.nodes[9]
    follower = next(node for node in quorum.nodes.values() if node is not leader)
    assert leader.raft is not None
    leader.raft.own_entry = presence_of(leader.id)
    quorum.wait(1.0)  # until the record of the leader itself has it
    places = [Listener("controller", "node-9", 9093)]
    quorum.take_lines()
    quorum.request(leader, AddRaftVoterRequest(CLUSTER, 1000, 9, UUID(int=5), places))
    quorum.request(leader, RemoveRaftVoterRequest(CLUSTER, follower.id, UUID(int=5)))
    quorum.request(leader, AddRaftVoterRequest(CLUSTER, 1000, 9, ninth.key.directory_id))
    quorum.request(
        leader, AddRaftVoterRequest(CLUSTER, 1000, 9, ninth.key.directory_id, [Listener("TLS", "node-9", 9)])
    )
    quorum.request(leader, AddRaftVoterRequest(CLUSTER, 1000, 9, ninth.key.directory_id, places))
    quorum.wait(0.1)
    assert quorum.take_lines() == lines("""
        answer REQUEST_TIMED_OUT
        answer VOTER_NOT_FOUND
        answer INVALID_REQUEST
        answer INVALID_REQUEST
        answer NONE
    """)


def test_the_features_of_a_future_voter_are_requested_first() -> None:
    quorum = Story(observed=True)
    leader, ninth = quorum.elect(), quorum.nodes[9]
    add = AddRaftVoterRequest(CLUSTER, 1000, 9, ninth.key.directory_id)
    heard: list[Any] = []
    quorum.take_lines()
    leader.asked(add, heard.append)
    quorum.request(leader, RemoveRaftVoterRequest(CLUSTER, leader.id, leader.key.directory_id))  # one at a time
    quorum.until(lambda: bool(heard))
    assert heard[0].error_code == ErrorCode.NONE
    leader.asked(RemoveRaftVoterRequest(CLUSTER, 9, ninth.key.directory_id), heard.append)
    quorum.until(lambda: len(heard) == 2)
    quorum.wait(0.5)
    ninth.kraft_versions = (0, 0)
    quorum.request(leader, add)
    ninth.crash()
    quorum.request(leader, add)
    quorum.request(leader, add)  # in its backoff
    quorum.wait(1.0)
    ninth.kraft_versions = (0, 1)
    ninth.start()
    quorum.wait(1.0)
    quorum.request(leader, add)
    assert quorum.take_lines() == lines("""
        answer REQUEST_TIMED_OUT
        answer INVALID_REQUEST
        9 crashes
        answer REQUEST_TIMED_OUT
        answer REQUEST_TIMED_OUT
        9 starts as follower in 1
        answer NONE
    """)


def test_a_leader_that_leaves_while_it_queries_a_future_voter_changes_nothing() -> None:
    quorum = Story(observed=True)
    leader, ninth = quorum.elect(), quorum.nodes[9]
    heard: list[Any] = []
    quorum.cut = {(9, leader.id), (leader.id, 9)}
    leader.asked(AddRaftVoterRequest(CLUSTER, 60_000, 9, ninth.key.directory_id), heard.append)
    leader.leave()
    assert [each.error_code for each in heard] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    quorum.wait(5.0)
    assert {voters_of(node) for node in quorum.nodes.values() if node.raft} == {frozenset({1, 2, 3})}


def test_a_change_without_a_majority_times_out_and_is_lost_with_its_leader() -> None:
    quorum = Story(observed=True)
    leader, ninth = quorum.elect(), quorum.nodes[9]
    quorum.cut_off(leader)
    quorum.cut -= {(leader.id, 9), (9, leader.id)}  # which reports what it supports
    quorum.take_lines()
    quorum.request(leader, AddRaftVoterRequest(CLUSTER, 500, 9, ninth.key.directory_id))
    assert quorum.take_lines() == ["answer REQUEST_TIMED_OUT"]
    assert voters_of(leader) == {1, 2, 3, 9}
    quorum.until(lambda: not leader.leads)
    quorum.mend()
    quorum.wait(8.0)
    assert voters_of(leader) == {1, 2, 3}


def test_a_node_with_an_empty_disk_gets_a_snapshot_and_does_not_vote() -> None:
    quorum = Story()
    leader, other = quorum.elect(), quorum.nodes[1]
    other.crash()
    other.replace_disk(UUID(int=77))
    for _ in range(12):
        quorum.client()
        quorum.wait(0.1)
    assert leader.raft is not None
    end = leader.raft.high_watermark
    leader.log.take_snapshot(end, cut=True)
    leader.tell_of_log()
    quorum.take_lines()
    other.start()
    quorum.wait(1.0)
    assert quorum.take_lines() == lines(f"""
        1 starts as unattached in 0
        1 is follower in 1
        1 takes over the snapshot at {end}
    """)
    assert other.log.start == end
    assert other.raft is not None
    assert not other.raft.is_voter


def test_a_single_voter_leads_at_once() -> None:
    quorum = Story(1)
    assert quorum.nodes[1].leads
    quorum.wait(0.1)
    assert len(quorum.committed) == 3


def test_a_single_voter_keeps_leading_when_a_second_joins_and_resigns_when_it_leaves() -> None:
    quorum = Story(1, observed=True)
    first, ninth = quorum.elect(), quorum.nodes[9]
    quorum.wait(5.0)
    quorum.take_lines()
    quorum.request(first, AddRaftVoterRequest(CLUSTER, 1000, 9, ninth.key.directory_id))
    quorum.wait(5.0)
    assert quorum.take_lines() == ["answer NONE"]
    quorum.request(first, RemoveRaftVoterRequest(CLUSTER, 1, first.key.directory_id))
    quorum.wait(1.5)
    assert {voters_of(node) for node in quorum.nodes.values()} == {frozenset({9})}
    assert ninth.leads


def move(node: QuorumNode, port: int) -> None:
    """Restart it at another port."""
    node.crash()
    node.own_entry = presence_of(node.id, port)
    node.start()


def port_of(node: QuorumNode, voter: int) -> int:
    """Return the port of a voter in the voters record of that node."""
    assert node.raft is not None
    return next((each.port for each in node.raft.voters.endpoints(voter)), 0)


def test_a_moved_voter_has_the_leader_update_its_record() -> None:
    quorum = Story()
    leader = quorum.elect()
    other = next(node for node in quorum.nodes.values() if node is not leader)
    move(other, 9193)
    quorum.until(lambda: {port_of(node, other.id) for node in quorum.nodes.values()} == {9193})
    assert leader.leads


def test_a_leader_with_a_new_address_updates_its_own_record() -> None:
    quorum = Story(1)
    move(quorum.elect(), 9193)
    quorum.until(lambda: port_of(quorum.nodes[1], 1) == 9193)
    assert quorum.nodes[1].raft is not None
    assert quorum.nodes[1].raft._voter_change is None


def test_an_automatic_voter_votes_once_it_has_the_log() -> None:
    quorum = Story(1, observed=True)
    quorum.elect()
    move(quorum.nodes[9], 9093)
    quorum.until(lambda: {voters_of(node) for node in quorum.nodes.values()} == {frozenset({1, 9})})


def test_an_automatic_voter_with_an_empty_disk_votes_again_with_its_new_directory() -> None:
    quorum = Story()
    leader = quorum.elect()
    other = next(node for node in quorum.nodes.values() if node is not leader)
    other.crash()
    other.replace_disk(UUID(int=77))
    other.own_entry = presence_of(other.id)
    other.start()
    quorum.until(lambda: other.raft is not None and other.raft.is_voter and len(other.raft.voters) == 3)
    assert other.raft is not None
    assert other.raft.voters.has(other.key)


def voters_of(node: QuorumNode) -> frozenset[int]:
    assert node.raft is not None
    return node.raft.voters.ids


class Overheard(QuorumHistory):
    """A history of which every message is kept."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, observed=True)
        self.said: list[Message] = []

    def ask(self, sender: QuorumNode, to: int, number: int, request: Message) -> None:
        self.said.append(request)
        super().ask(sender, to, number, request)


def test_every_message_is_a_valid_kafka_message() -> None:
    said: dict[type[Message], int] = {}
    answered = QuorumNode.answered

    def overhear(self: QuorumNode, by: int, number: int, response: Message | None) -> None:
        if response is not None and isinstance(self.history, Overheard):
            self.history.said.append(response)
        answered(self, by, number, response)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QuorumNode, "answered", overhear)
        for seed in range(4):
            history = Overheard(seed)
            history.run()
            for message in history.said:
                check_round_trip(message)
                said[type(message)] = said.get(type(message), 0) + 1
    assert len(said) >= 8


def check_round_trip(message: Any) -> None:
    """Check that a message is unchanged by the codec of the newest version. The owner of the log writes its records."""
    partition = None if isinstance(message, Whole) else wire.metadata_partition(message)
    for each in () if partition is None else (partition,):
        for name in ("records", "unaligned_records"):
            if isinstance(getattr(each, name, None), tuple):
                setattr(each, name, b"")
    plan = plan_of(type(message), type(message).VERSIONS.last)
    assert tidy(Reader(b"".join(map(bytes, Writer().write(plan, message)))).read(plan)) == tidy(newest(message))  # type: ignore[arg-type]


def newest(message: Any) -> Any:
    """Return the message as it is read again: fields of older versions only are at their defaults."""
    partition = None if isinstance(message, Whole) else wire.metadata_partition(message)
    if isinstance(message, FetchRequest | FetchResponse):
        for topic in message.topics if isinstance(message, FetchRequest) else message.responses:
            topic.topic = ""
    if isinstance(message, EndQuorumEpochRequest) and partition is not None:
        partition.preferred_successors = ()
    return message


def test_a_quorum_with_slow_votes_still_elects_a_leader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quorum_node, "CONFIG", replace(quorum_node.CONFIG, election_timeout_ms=250))
    story = Sluggish()
    leader = story.elect()
    assert story.world.now < 30
    story.wait(10)
    assert leader.leads
