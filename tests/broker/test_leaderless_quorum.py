"""A quorum without a leader reports the missing voters."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.controller.leaderless_quorum import MOST_SECONDS, LeaderlessQuorum
from ottla.broker.controller.quorum_replica import warn_of_fixed_voters
from ottla.coordination.quorum import wire
from ottla.coordination.quorum.config import QuorumConfig
from ottla.coordination.quorum.events import ResponseReceived
from ottla.coordination.quorum.log_shape import LogShape
from ottla.coordination.quorum.observer import Address
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import State
from ottla.coordination.quorum.voters import NO_VOTERS, ReplicaKey, VoterSet
from ottla.errors import ErrorCode
from ottla.protocol.messages.add_raft_voter import AddRaftVoterResponse
from tests.broker.quorum_nodes import Place, new_hosts, three
from tests.patience import eventually

KEYS = [ReplicaKey(id_, UUID(int=id_)) for id_ in (1, 2, 3)]
PATIENCE = 6.0


ALL = VoterSet.of(*KEYS)


def quorum(voters: VoterSet = ALL) -> tuple[Raft, LeaderlessQuorum]:
    """Node 1 of three, started at 0."""
    raft = Raft(KEYS[0], "cluster", LogShape(voters=voters), None, QuorumConfig(), 0.0, 0.0, [-2])
    return raft, LeaderlessQuorum(raft, lambda node: Address("host", abs(node)), PATIENCE, 0.0)


def answer(node: int, code: int = ErrorCode.NONE) -> ResponseReceived:
    return ResponseReceived(node, 1, wire.ResponseBuilder(0, None, []).vote_response(code, granted=False))


def test_missing_voters_are_named_soon_and_then_at_growing_intervals() -> None:
    _, leaderless = quorum()
    said = {second: sentence for second in range(2000) if (sentence := leaderless.check(float(second)))}
    assert list(said)[:5] == [6, 18, 42, 90, 186]
    assert (
        said[6]
        == "the quorum has had no leader for 6 s: 2 of the 3 voters are needed, and there is no answer from node 2 at host:2, "
        "node 3 at host:3; start what is missing, or see whether it is reached"
    )
    assert max(b - a for a, b in zip(list(said), list(said)[1:], strict=False)) == MOST_SECONDS


def test_a_voter_that_responds_is_not_missing() -> None:
    _, leaderless = quorum()
    leaderless.handle_response(answer(2), 3.0)
    assert "no answer from node 3 at host:3;" in (leaderless.check(6.0) or "")
    for node in (2, 3):
        leaderless.handle_response(answer(node), 17.0)
    assert "all of them respond to this node: see their logs" in (leaderless.check(18.0) or "")
    leaderless.handle_response(ResponseReceived(3, 2, AddRaftVoterResponse()), 39.0)
    leaderless.handle_response(answer(2, ErrorCode.INVALID_VOTER_KEY), 40.0)
    assert "node 2 at host:2 does not have the directory of the voter" in (leaderless.check(42.0) or "")


def test_a_voter_that_answered_long_ago_is_missing() -> None:
    _, leaderless = quorum()
    for node in (2, 3):
        leaderless.handle_response(answer(node), 1.0)
    assert "all of them respond" in (leaderless.check(6.5) or "")
    leaderless.handle_response(answer(2), 17.0)
    assert "no answer from node 3 at host:3;" in (leaderless.check(18.5) or "")


def test_a_leader_that_answered_shortly_before_its_end_is_missing() -> None:
    raft, leaderless = quorum()
    raft.state, raft.leader_id, raft._has_leader_answered = State.FOLLOWER, 3, True
    leaderless.handle_response(answer(3), 1.0)
    assert leaderless.check(2.0) is None
    leaderless.handle_response(answer(3), 2.5)
    raft.leader_id = None
    assert leaderless.check(3.0) is None
    leaderless.handle_response(answer(2), 4.0)
    assert "no answer from node 3 at host:3;" in (leaderless.check(8.0) or "")


def test_the_time_in_which_the_node_itself_was_suspended_does_not_count() -> None:
    _, leaderless = quorum()
    assert leaderless.check(5.0) is None
    leaderless.exclude_suspension(7.0)
    assert leaderless.check(12.9) is None
    assert "for 6 s" in (leaderless.check(13.0) or "")


def test_a_new_node_names_its_bootstrap_addresses() -> None:
    _, leaderless = quorum(NO_VOTERS)
    assert "no answer from host:2; start a controller there" in (leaderless.check(6.0) or "")
    leaderless.handle_response(answer(-2), 17.0)
    assert "none of them knows a leader" in (leaderless.check(18.0) or "")


def test_an_elected_leader_is_logged_and_the_next_absence_starts_a_new_interval() -> None:
    raft, leaderless = quorum()
    assert leaderless.check(6.0) is not None
    raft.state, raft.leader_id, raft._has_leader_answered = State.FOLLOWER, 2, True
    leaderless.handle_response(answer(2), 7.0)
    assert leaderless.check(7.5) == "node 2 leads the quorum"
    assert leaderless.check(12.0) is None
    assert leaderless.check(13.4) is None
    assert "for 6 s" in (leaderless.check(18.1) or "")


def test_a_node_whose_id_votes_with_another_directory_logs_it_once() -> None:
    raft, leaderless = quorum(VoterSet.of(ReplicaKey(1, UUID(int=9)), *KEYS[1:]))
    raft.state, raft.leader_id, raft._has_leader_answered = State.FOLLOWER, 2, True
    said = []
    for second in range(60):
        leaderless.handle_response(answer(2), float(second))
        said.append((second, leaderless.check(float(second))))
    ((second, sentence),) = [each for each in said if each[1] is not None]
    assert second == PATIENCE
    assert sentence == (
        "this node does not vote, and the quorum can lose one less: node 1 votes with the directory AAAAAAAAAAAAAAAAAAAACQ, and has "
        "AAAAAAAAAAAAAAAAAAAAAQ; start it with that one, or run `ottla cluster remove-controller 1` and then `ottla cluster add-controller 1 --address HOST:PORT`"
    )
    raft.leader_id = None
    assert "2 of the 3 voters are needed, and node 1 votes with the directory" in (leaderless.check(80.0) or "")


def test_a_single_voter_with_another_directory_gets_the_remedy() -> None:
    _, leaderless = quorum(VoterSet.of(ReplicaKey(1, UUID(int=9))))
    assert (leaderless.check(80.0) or "").endswith(
        "1 of the 1 voters are needed, and node 1 votes alone with the directory AAAAAAAAAAAAAAAAAAAACQ, and has AAAAAAAAAAAAAAAAAAAAAQ; "
        "start it with that one, or, if this is that one, write directory.id=AAAAAAAAAAAAAAAAAAAACQ into its meta.properties"
    )


def test_a_voter_does_not_mention_its_directory() -> None:
    raft, leaderless = quorum()
    raft.state, raft.leader_id, raft._has_leader_answered = State.FOLLOWER, 2, True
    for second in range(60):
        leaderless.handle_response(answer(2), float(second))
        assert leaderless.check(float(second)) is None


def test_a_controller_logs_which_voters_are_missing_for_an_election(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, *others = three(tmp_path)
    first.settings |= {f"controller.quorum.{name}.timeout.ms": "100" for name in ("election", "fetch")}
    with first.serving():
        eventually(lambda: "has had no leader" in caplog.text)
    assert f"no answer from node 2 at {others[0].address}, node 3 at {others[1].address}" in caplog.text


def test_fixed_voters_that_differ_from_the_log_cause_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (host,) = new_hosts(1)
    config = Place(tmp_path, 1, host, controller_quorum_voters=f"1@{host}:9093").config
    warn_of_fixed_voters(config, LogShape(voters=VoterSet.of(KEYS[0])))
    assert caplog.text == ""
    warn_of_fixed_voters(config, LogShape(voters=VoterSet.of(*KEYS)))
    assert "controller.quorum.voters names 1, and 1, 2, 3 vote by the log, which counts" in caplog.text
