"""What is said of a quorum in which nobody leads: who is missing, soon at first, then ever more rarely. Pure.

Missing is a voter that has answered nothing since it was last told who leads, or since this node was started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ottla.coordination.quorum import wire
from ottla.coordination.quorum.events import Event, ResponseReceived
from ottla.coordination.quorum.observer import Address
from ottla.coordination.quorum.raft import Raft
from ottla.coordination.quorum.state import State
from ottla.errors import ErrorCode
from ottla.kafka_id import text_of
from ottla.protocol.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from ottla.protocol.messages.vote import VoteResponse

MOST_SECONDS = 600.0
"""The longest pause between two sentences."""


class Leaderless:
    """Looks at one replica; `patience` is after how many seconds without a leader it begins to tell."""

    def __init__(self, raft: Raft, place: Callable[[int], Address | None], patience: float, now: float) -> None:
        self._raft = raft
        self._place = place
        self._patience = self._pause = patience
        self._since, self._tell_at = now, now + patience
        self._is_told = False
        self._heard: dict[int, float] = {}
        self._others: set[int] = set()
        """Who answers that its directory is not the one that was asked for."""
        self._apart: float | None = None
        """Since when others lead, and its own number votes with another directory; infinity once that is told."""

    def heard(self, event: Event, now: float) -> None:
        """Something came back from another, or did not."""
        if not isinstance(event, ResponseReceived):
            return
        self._heard[event.by] = now
        named = isinstance(event.response, VoteResponse | BeginQuorumEpochResponse)
        partition = wire.metadata_partition(event.response) if named else None
        misdirected = partition is not None and partition.error_code == ErrorCode.INVALID_VOTER_KEY
        (self._others.add if misdirected else self._others.discard)(event.by)

    def stood_still(self, seconds: float) -> None:
        """For so long this process did not run, and could not have heard of a leader."""
        self._since += seconds
        self._tell_at += seconds

    def look(self, now: float) -> str | None:
        """What is to be said by now."""
        if self._is_led(now):
            was_told = self._is_told
            self._since, self._tell_at, self._pause, self._is_told = now, now + self._patience, self._patience, False
            return f"node {self._raft.leader_id} leads the quorum" if was_told else self._look_at_the_own_vote(now)
        if now < self._tell_at:
            return None
        self._is_told, self._pause = True, min(self._pause * 2, MOST_SECONDS)
        self._tell_at = now + self._pause
        return f"nobody has led the quorum for {now - self._since:.0f} s: {self._reason()}"

    def _look_at_the_own_vote(self, now: float) -> str | None:
        """Once, where that stays so: who joins by itself has its vote by then."""
        if not self._is_apart:
            self._apart = None
        elif self._apart is None:
            self._apart = now
        elif now >= self._apart + self._patience:
            self._apart = float("inf")
            return f"this node does not vote, and the quorum can lose one less: {self._reason_of_the_own_directory()}"
        return None

    @property
    def _is_apart(self) -> bool:
        """Whether its number votes, and its directory does not."""
        return self._raft.me.id in self._raft.voters.ids and not self._raft.voters.has(self._raft.me)

    def _reason_of_the_own_directory(self) -> str:
        me, (voter,) = self._raft.me, [key for key in self._raft.voters.keys if key.id == self._raft.me.id]
        if len(self._raft.voters) == 1:
            return (
                f"node {me.id} votes alone with the directory {text_of(voter.directory_id)}, and has {text_of(me.directory_id)}; start it with that "
                f"one, or, if this is that one, write directory.id={text_of(voter.directory_id)} into its meta.properties"
            )
        return (
            f"node {me.id} votes with the directory {text_of(voter.directory_id)}, and has {text_of(me.directory_id)}; start it with that one, "
            f"or run `ottla cluster remove-controller {me.id}` and then `ottla cluster add-controller {me.id} --address HOST:PORT`"
        )

    def _is_led(self, now: float) -> bool:
        raft = self._raft
        follows = raft.state is State.FOLLOWER and raft.leader_id is not None
        return raft.state is State.LEADER or (
            follows and self._heard.get(raft.leader_id or 0, 0.0) > now - self._patience and raft._has_leader_answered
        )

    def _reason(self) -> str:
        voters, me = self._raft.voters, self._raft.me
        if not voters:
            return self._reason_of_a_newcomer()
        others = voters.others(me)
        missing, elsewhere = self._silent(others), sorted(self._others.intersection(others))
        needed = f"{voters.majority} of the {len(voters)} voters are needed"
        if self._is_apart:
            return f"{needed}, and {self._reason_of_the_own_directory()}"
        reasons = []
        if elsewhere:
            reasons.append(
                f"{self._names(elsewhere)} has another directory than the one that votes; start it with that one, or have the others "
                "remove the vote and add it anew"
            )
        if missing:
            reasons.append(
                f"there is no answer from {self._names(missing)}; start what is missing, or see whether it is reached"
            )
        return ", and ".join([needed, *(reasons or ["all answer this node: look at what they log"])])

    def _reason_of_a_newcomer(self) -> str:
        asked = self._raft.bootstrap
        silent = self._silent(asked)
        if len(silent) < len(asked):
            return "controllers answer this node, and none of them knows who leads: look at what they log"
        return (
            f"this node has not heard yet who votes, and there is no answer from {self._names(silent)}; start a controller there, or "
            "correct controller.quorum.bootstrap.servers"
        )

    def _silent(self, nodes: Iterable[int]) -> list[int]:
        return [node for node in sorted(nodes, key=abs) if self._heard.get(node, float("-inf")) <= self._since]

    def _names(self, nodes: Sequence[int]) -> str:
        return ", ".join(self._name(node) for node in nodes)

    def _name(self, node: int) -> str:
        place = self._place(node)
        number = "" if node < 0 else f"node {node}"
        where = "" if place is None else f"{place.host}:{place.port}"
        return " at ".join(part for part in (number, where) if part)
