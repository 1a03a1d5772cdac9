"""A quorum in which nobody leads says who is missing."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.controllers.leaderless import MOST_SECONDS, Leaderless
from ottla.broker.controllers.quorum_node import warn_of_fixed_voters
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


def quorum(voters: VoterSet = ALL) -> tuple[Raft, Leaderless]:
    """Node 1 of three, started at 0."""
    raft = Raft(KEYS[0], "cluster", LogShape(voters=voters), None, QuorumConfig(), 0.0, 0.0, [-2])
    return raft, Leaderless(raft, lambda node: Address("host", abs(node)), PATIENCE, 0.0)


def answer(node: int, code: int = ErrorCode.NONE) -> ResponseReceived:
    return ResponseReceived(node, 1, wire.ResponseBuilder(0, None, []).vote_response(code, granted=False))


def test_who_is_missing_is_named_soon_and_then_ever_more_rarely() -> None:
    _, leaderless = quorum()
    said = {second: sentence for second in range(2000) if (sentence := leaderless.look(float(second)))}
    assert list(said)[:5] == [6, 18, 42, 90, 186]
    assert (
        said[6]
        == "nobody has led the quorum for 6 s: 2 of the 3 voters are needed, and there is no answer from node 2 at host:2, "
        "node 3 at host:3; start what is missing, or see whether it is reached"
    )
    assert max(b - a for a, b in zip(list(said), list(said)[1:], strict=False)) == MOST_SECONDS


def test_who_answers_is_not_missing() -> None:
    _, leaderless = quorum()
    leaderless.heard(answer(2), 3.0)
    assert "no answer from node 3 at host:3;" in (leaderless.look(6.0) or "")
    leaderless.heard(answer(3), 7.0)
    assert "all answer this node: look at what they log" in (leaderless.look(18.0) or "")
    leaderless.heard(ResponseReceived(3, 2, AddRaftVoterResponse()), 19.0)
    leaderless.heard(answer(2, ErrorCode.INVALID_VOTER_KEY), 20.0)
    assert "node 2 at host:2 has another directory than the one that votes" in (leaderless.look(42.0) or "")


def test_the_time_in_which_the_node_itself_stood_still_does_not_count() -> None:
    _, leaderless = quorum()
    assert leaderless.look(5.0) is None
    leaderless.stood_still(7.0)
    assert leaderless.look(12.9) is None
    assert "for 6 s" in (leaderless.look(13.0) or "")


def test_a_newcomer_names_the_addresses_that_it_was_given() -> None:
    _, leaderless = quorum(NO_VOTERS)
    assert "no answer from host:2; start a controller there" in (leaderless.look(6.0) or "")
    leaderless.heard(answer(-2), 7.0)
    assert "none of them knows who leads" in (leaderless.look(18.0) or "")


def test_a_leader_that_was_missed_is_named_and_the_next_time_begins_anew() -> None:
    raft, leaderless = quorum()
    assert leaderless.look(6.0) is not None
    raft.state, raft.leader_id, raft._has_leader_answered = State.FOLLOWER, 2, True
    leaderless.heard(answer(2), 7.0)
    assert leaderless.look(7.5) == "node 2 leads the quorum"
    assert leaderless.look(12.0) is None
    assert leaderless.look(13.4) is None
    assert "for 6 s" in (leaderless.look(18.1) or "")


def test_a_node_whose_number_votes_with_another_directory_says_so_once() -> None:
    raft, leaderless = quorum(VoterSet.of(ReplicaKey(1, UUID(int=9)), *KEYS[1:]))
    raft.state, raft.leader_id, raft._has_leader_answered = State.FOLLOWER, 2, True
    said = []
    for second in range(60):
        leaderless.heard(answer(2), float(second))
        said.append((second, leaderless.look(float(second))))
    ((second, sentence),) = [each for each in said if each[1] is not None]
    assert second == PATIENCE
    assert sentence == (
        "this node does not vote, and the quorum can lose one less: node 1 votes with the directory AAAAAAAAAAAAAAAAAAAACQ, and has "
        "AAAAAAAAAAAAAAAAAAAAAQ; start it with that one, or run `ottla cluster remove-controller 1` and then `ottla cluster add-controller 1 --address HOST:PORT`"
    )
    raft.leader_id = None
    assert "2 of the 3 voters are needed, and node 1 votes with the directory" in (leaderless.look(80.0) or "")


def test_who_votes_alone_with_another_directory_is_told_what_to_write() -> None:
    _, leaderless = quorum(VoterSet.of(ReplicaKey(1, UUID(int=9))))
    assert (leaderless.look(80.0) or "").endswith(
        "1 of the 1 voters are needed, and node 1 votes alone with the directory AAAAAAAAAAAAAAAAAAAACQ, and has AAAAAAAAAAAAAAAAAAAAAQ; "
        "start it with that one, or, if this is that one, write directory.id=AAAAAAAAAAAAAAAAAAAACQ into its meta.properties"
    )


def test_a_node_that_votes_says_nothing_of_its_directory() -> None:
    raft, leaderless = quorum()
    raft.state, raft.leader_id, raft._has_leader_answered = State.FOLLOWER, 2, True
    for second in range(60):
        leaderless.heard(answer(2), float(second))
        assert leaderless.look(float(second)) is None


def test_a_controller_logs_who_keeps_it_from_a_leader(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, *others = three(tmp_path)
    first.settings |= {f"controller.quorum.{name}.timeout.ms": "100" for name in ("election", "fetch")}
    with first.serving():
        eventually(lambda: "nobody has led" in caplog.text)
    assert f"no answer from node 2 at {others[0].address}, node 3 at {others[1].address}" in caplog.text


def test_settings_that_name_other_voters_than_the_log_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (host,) = new_hosts(1)
    config = Place(tmp_path, 1, host, controller_quorum_voters=f"1@{host}:9093").config
    warn_of_fixed_voters(config, LogShape(voters=VoterSet.of(KEYS[0])))
    assert caplog.text == ""
    warn_of_fixed_voters(config, LogShape(voters=VoterSet.of(*KEYS)))
    assert "controller.quorum.voters names 1, and 1, 2, 3 vote by the log, which counts" in caplog.text
