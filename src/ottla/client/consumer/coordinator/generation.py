"""Which member this is, and in which generation of its group."""

from __future__ import annotations

from typing import NamedTuple

UNKNOWN_GENERATION = -1
UNKNOWN_MEMBER_ID = ""


class Generation(NamedTuple):
    """A member's place in its group."""

    generation_id: int = UNKNOWN_GENERATION
    member_id: str = UNKNOWN_MEMBER_ID
    protocol_name: str | None = None
    """The assignor that the group has agreed on."""

    def __str__(self) -> str:
        return (
            f"Generation{{generationId={self.generation_id}, memberId='{self.member_id}', "
            f"protocol='{self.protocol_name}'}}"
        )

    @property
    def is_none(self) -> bool:
        """Whether it is no place at all: nothing that was assigned in an earlier one is still ours."""
        return self.generation_id == UNKNOWN_GENERATION or self.member_id == UNKNOWN_MEMBER_ID


NO_GENERATION = Generation()


class ConsumerGroupMetadata(NamedTuple):
    """What a transactional producer hands on with the offsets it commits (KIP-447)."""

    group_id: str
    generation_id: int = UNKNOWN_GENERATION
    member_id: str = UNKNOWN_MEMBER_ID
    group_instance_id: str | None = None
