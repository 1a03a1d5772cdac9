"""The identity of a member and the generation of its group."""

from __future__ import annotations

from typing import NamedTuple

UNKNOWN_GENERATION = -1
UNKNOWN_MEMBER_ID = ""


class Generation(NamedTuple):
    """A member's id and its generation."""

    generation_id: int = UNKNOWN_GENERATION
    member_id: str = UNKNOWN_MEMBER_ID
    protocol_name: str | None = None
    """The assignor that the members agreed on."""

    def __str__(self) -> str:
        return (
            f"Generation{{generationId={self.generation_id}, memberId='{self.member_id}', "
            f"protocol='{self.protocol_name}'}}"
        )

    @property
    def is_none(self) -> bool:
        """True if there is no membership: assignments of an earlier one are no longer valid."""
        return self.generation_id == UNKNOWN_GENERATION or self.member_id == UNKNOWN_MEMBER_ID


NO_GENERATION = Generation()


class ConsumerGroupMetadata(NamedTuple):
    """The group metadata that a transactional producer sends with offsets (KIP-447)."""

    group_id: str
    generation_id: int = UNKNOWN_GENERATION
    member_id: str = UNKNOWN_MEMBER_ID
    group_instance_id: str | None = None
