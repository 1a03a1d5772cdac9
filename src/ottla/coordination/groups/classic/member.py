"""One member of a classic group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ottla.coordination.groups.classic.subscription import subscribed_topics
from ottla.errors import few_of

Protocols = tuple[tuple[str, bytes], ...]
"""Names and metadata of what a member can do, the preferred one first."""
CONSUMER = "consumer"
"""The protocol type whose metadata tells topics."""


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """A member as the coordinator knows it; a new value for each change."""

    member_id: str
    instance_id: str | None
    """The name of a static member."""
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    joining: int = 0
    """The ticket of its join that waits, 0 where none does."""
    syncing: int = 0
    """The ticket of its sync that waits, 0 where none does."""
    is_new: bool = False
    """Whether it has never been answered a join: it cannot send heartbeats yet."""
    topics: dict[str, frozenset[str] | None] = field(default_factory=dict, compare=False, repr=False)
    """What was read of the metadata, by protocol; filled when it is first asked for."""

    def metadata(self, protocol: str | None) -> bytes:
        """What it said for a protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def vote(self, candidates: frozenset[str]) -> str:
        """The candidate it likes best."""
        return next(name for name, _ in self.protocols if name in candidates)

    def subscription(self, protocol: str | None) -> frozenset[str] | None:
        """The topics it wants, by the consumer protocol; None where that cannot be read."""
        if protocol is None:
            return None
        if protocol not in self.topics:
            self.topics[protocol] = subscribed_topics(self.metadata(protocol))
        return self.topics[protocol]

    @property
    def waits(self) -> bool:
        """Whether it waits for an answer, and so cannot send heartbeats."""
        return bool(self.joining or self.syncing)


def listed(members: Sequence[str], most: int = 10) -> str:
    """Some ids for a person."""
    return few_of(members, most)


def as_named(member_id: str, instance_id: str | None) -> str:
    """A member as the beginning of a sentence, with its instance where it has one."""
    return member_id if instance_id is None else f"{member_id}, which is instance {instance_id},"


def as_said(reason: str | None) -> str:
    """What a client says of its coming or going (KIP-800), behind what it did; nothing where it says nothing."""
    return f": {reason}" if reason else ""
