"""Log lines about a quorum without a leader: which voters do not answer. Pure.

The first line comes after `patience` seconds without a leader; the pause doubles after each line up to `MOST_SECONDS`. A voter
counts as missing if it has not answered for `patience` seconds, in which it is asked to vote more than once, or not since the
last known leader or the start of this process. While there is a leader, one more line reports that this node's id votes with
another directory id, if that lasts as long.
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
"""The longest pause between two lines."""


class LeaderlessQuorum:
    """Observes one replica. `patience` is the time in seconds without a leader before the first line."""

    def __init__(self, raft: Raft, place: Callable[[int], Address | None], patience: float, now: float) -> None:
        self._raft = raft
        self._place = place
        self._patience = self._pause = patience
        self._since, self._log_at = now, now + patience
        self._is_logged = False
        self._checked_at = now
        self._responses: dict[int, float] = {}
        self._last_leader: int | None = None
        """The leader at the last check; None after a check without one."""
        self._others: set[int] = set()
        """Nodes that answered INVALID_VOTER_KEY: their directory is not the one that votes."""
        self._apart: float | None = None
        """Start of the time in which another node leads, and this directory does not vote; infinity once logged."""

    def handle_response(self, event: Event, now: float) -> None:
        """Record that another node has answered, or that its directory does not vote."""
        if not isinstance(event, ResponseReceived):
            return
        self._responses[event.by] = now
        named = isinstance(event.response, VoteResponse | BeginQuorumEpochResponse)
        partition = wire.metadata_partition(event.response) if named else None
        misdirected = partition is not None and partition.error_code == ErrorCode.INVALID_VOTER_KEY
        (self._others.add if misdirected else self._others.discard)(event.by)

    def exclude_suspension(self, seconds: float) -> None:
        """Extend the deadlines by a time during which this process did not run."""
        self._since += seconds
        self._log_at += seconds

    def check(self, now: float) -> str | None:
        """Return the line to log now, or None."""
        self._checked_at = now
        if self._is_led(now):
            was_logged, self._last_leader = self._is_logged, self._raft.leader_id
            self._since, self._log_at, self._pause, self._is_logged = now, now + self._patience, self._patience, False
            return f"node {self._raft.leader_id} leads the quorum" if was_logged else self._check_own_vote(now)
        if self._last_leader is not None:
            # It answered after the last check, and was lost since: only a new answer shows that it runs.
            self._responses.pop(self._last_leader, None)
            self._last_leader = None
        if now < self._log_at:
            return None
        self._is_logged, self._pause = True, min(self._pause * 2, MOST_SECONDS)
        self._log_at = now + self._pause
        return f"the quorum has had no leader for {now - self._since:.0f} s: {self._describe_reason()}"

    def _check_own_vote(self, now: float) -> str | None:
        """Return a line, once, if this node's directory still does not vote.

        A node that joins automatically votes by then.
        """
        if not self._is_apart:
            self._apart = None
        elif self._apart is None:
            self._apart = now
        elif now >= self._apart + self._patience:
            self._apart = float("inf")
            return f"this node does not vote, and the quorum can lose one less: {self._describe_own_directory()}"
        return None

    @property
    def _is_apart(self) -> bool:
        """True if this node's id is among the voters with another directory id."""
        return self._raft.me.id in self._raft.voters.ids and not self._raft.voters.has(self._raft.me)

    def _describe_own_directory(self) -> str:
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
            follows
            and self._responses.get(raft.leader_id or 0, 0.0) > now - self._patience
            and raft._has_leader_answered
        )

    def _describe_reason(self) -> str:
        voters, me = self._raft.voters, self._raft.me
        if not voters:
            return self._describe_bootstrap()
        others = voters.others(me)
        missing, elsewhere = self._list_silent(others), sorted(self._others.intersection(others))
        needed = f"{voters.majority} of the {len(voters)} voters are needed"
        if self._is_apart:
            return f"{needed}, and {self._describe_own_directory()}"
        reasons = []
        if elsewhere:
            reasons.append(
                f"{self._format_nodes(elsewhere)} does not have the directory of the voter; start it with that directory, or "
                "remove the voter and add it again"
            )
        if missing:
            reasons.append(
                f"there is no answer from {self._format_nodes(missing)}; start what is missing, or see whether it is reached"
            )
        return ", and ".join([needed, *(reasons or ["all of them respond to this node: see their logs"])])

    def _describe_bootstrap(self) -> str:
        asked = self._raft.bootstrap
        silent = self._list_silent(asked)
        if len(silent) < len(asked):
            return "the controllers respond to this node, and none of them knows a leader: see their logs"
        return (
            f"this node does not know the voters yet, and there is no answer from {self._format_nodes(silent)}; start a controller there, or "
            "correct controller.quorum.bootstrap.servers"
        )

    def _list_silent(self, nodes: Iterable[int]) -> list[int]:
        since = max(self._since, self._checked_at - self._patience)
        return [node for node in sorted(nodes, key=abs) if self._responses.get(node, float("-inf")) <= since]

    def _format_nodes(self, nodes: Sequence[int]) -> str:
        return ", ".join(self._format_node(node) for node in nodes)

    def _format_node(self, node: int) -> str:
        place = self._place(node)
        number = "" if node < 0 else f"node {node}"
        where = "" if place is None else f"{place.host}:{place.port}"
        return " at ".join(part for part in (number, where) if part)
