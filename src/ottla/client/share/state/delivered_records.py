"""The records that the user holds, and their acknowledgements. Pure.

`poll` adds records; the user acknowledges them; `take` returns what is to be sent. A record leaves with an acknowledgement
other than RENEW. A renewed record stays: after the renewal has succeeded, it must be acknowledged again, and `poll`
returns it again unless the user has done so before.

    held ── acknowledged ── take ──► (left)
      ▲          └── RENEW: take ──► renewing ── succeeded ──► renewed ── poll ──► held
      │                                 └─────── failed ─────► (left)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ottla.client.consumer.records import RecordSlice
from ottla.client.share.state.acknowledgements import (
    Acknowledgements,
    AcknowledgeResult,
    AcknowledgeType,
    ShareTopicPartition,
)
from ottla.errors import IllegalStateError
from ottla.model import TopicPartition

UNKNOWN = "cannot acknowledge offset {} of {}: the record is not held by this consumer, or its acknowledgement was sent"
UNACKNOWLEDGED = (
    "{} records are not acknowledged, the first at offset {} of {}: with share.acknowledgement.mode=explicit, "
    "acknowledge all records of a poll before the next poll"
)


class DeliveredPart:
    """Records of one partition that were acquired in one share session."""

    def __init__(self, partition: ShareTopicPartition, node_id: int, generation: int) -> None:
        self.partition = partition
        self.node_id = node_id
        self.generation = generation
        """The session in which the records were acquired."""
        self.slices: list[RecordSlice] = []
        """The records, for returning renewed ones again."""
        self.held: set[int] = set()
        """The offsets that the user must acknowledge."""
        self.failed: set[int] = set()
        """The offsets of records that could not be read; they have an acknowledgement, which the user may replace."""
        self.acknowledged: dict[int, int] = {}
        """The acknowledgements that were not taken yet."""
        self.renewing: set[int] = set()
        self.renewed: set[int] = set()

    def is_empty(self) -> bool:
        return not (self.held or self.acknowledged or self.renewing or self.renewed)

    def has(self, offset: int) -> bool:
        """Return True if the user may acknowledge the offset."""
        return any(offset in each for each in (self.held, self.failed, self.renewing, self.renewed))

    def unacknowledged(self) -> Iterator[int]:
        """Yield the offsets that the user has not acknowledged, in order."""
        return (offset for offset in sorted(self.held) if offset not in self.acknowledged)

    def forget(self, offsets: set[int]) -> None:
        """Forget records that were delivered again."""
        for each in (self.held, self.failed, self.renewing, self.renewed):
            each -= offsets
        for offset in offsets & self.acknowledged.keys():
            del self.acknowledged[offset]

    def take(self) -> dict[int, int]:
        """Return the acknowledgements. Those of terminal types end the user's hold of the record."""
        taken, self.acknowledged = self.acknowledged, {}
        renewals = {offset for offset, kind in taken.items() if kind == AcknowledgeType.RENEW}
        for offsets in (self.held, self.failed, self.renewing, self.renewed):
            offsets.difference_update(taken)
        self.renewing |= renewals
        return taken


class DeliveredRecords:
    """All records that the user holds."""

    def __init__(self) -> None:
        self._parts: list[DeliveredPart] = []
        self.last_slices: list[RecordSlice] = []
        """The records that the last `poll` returned."""
        self.is_returned = True
        """False while `poll` returns records: if that is interrupted, the user has not seen them."""

    @property
    def is_empty(self) -> bool:
        """True if no record is held and no acknowledgement waits to be taken."""
        return all(part.is_empty() for part in self._parts)

    @property
    def is_renewing(self) -> bool:
        """True if the result of a renewal is outstanding."""
        return any(part.renewing for part in self._parts)

    @property
    def held_count(self) -> int:
        """The number of records that the user must acknowledge."""
        return sum(len(part.held) for part in self._parts)

    def add(
        self,
        partition: ShareTopicPartition,
        node_id: int,
        generation: int,
        slices: Sequence[RecordSlice],
        automatic: Mapping[int, int],
        failed: Iterable[int] = (),
    ) -> None:
        """Add records that `poll` is about to return, and acknowledgements without records.

        `automatic` are acknowledgements that the client makes itself, for gaps and for records that cannot be read;
        the user may replace those of the offsets in `failed`.
        """
        part = self._part(partition, node_id, generation)
        part.slices.extend(slices)
        offsets = {offset for each in slices for offset in each.source.columns.offsets[each.start : each.stop]}
        part.held |= offsets
        part.acknowledged.update(automatic)
        part.failed.update(failed)
        for other in self._parts:
            if other.partition == partition and other is not part:
                other.forget(offsets)  # their lock has expired, or their session has ended

    def acknowledge(self, tp: TopicPartition, offset: int, kind: AcknowledgeType) -> None:
        """Acknowledge a record. A later acknowledgement replaces an earlier one that was not sent."""
        for part in reversed(self._parts):
            if part.partition.tp == tp and part.has(offset):
                part.acknowledged[offset] = int(kind)
                return
        raise IllegalStateError(UNKNOWN.format(offset, tp))

    def acknowledge_all(self, kind: AcknowledgeType) -> None:
        """Acknowledge all records that are not acknowledged yet."""
        for part in self._parts:
            for offset in part.held:
                part.acknowledged.setdefault(offset, int(kind))

    def require_acknowledged(self) -> None:
        """Raise IllegalStateError if a record is held and not acknowledged."""
        missing = [(offset, part.partition) for part in self._parts for offset in part.unacknowledged()]
        if missing:
            offset, partition = missing[0]
            raise IllegalStateError(UNACKNOWLEDGED.format(len(missing), offset, partition))

    def take(self, deadline: float) -> list[tuple[Acknowledgements, int]]:
        """Return the acknowledgements to send, each with the session of its records."""
        taken = []
        for part in self._parts:
            types = part.take()
            if types:
                taken.append((Acknowledgements(part.node_id, part.partition, types, deadline), part.generation))
        self._drop_empty()
        return taken

    def handle_result(self, result: AcknowledgeResult) -> None:
        """Handle the result of renewals: the user keeps the records, or has lost them."""
        renewals = {offset for offset, kind in result.sent.types.items() if kind == AcknowledgeType.RENEW}
        if not renewals:
            return
        for part in self._parts:
            if part.partition == result.sent.partition and part.node_id == result.sent.node_id:
                done = part.renewing & renewals
                part.renewing -= done
                if result.error is None:
                    part.renewed |= done
                else:
                    for offset in done:
                        part.acknowledged.pop(offset, None)
        self._drop_empty()

    def take_renewed(self) -> list[RecordSlice]:
        """Return the renewed records that the user has not acknowledged again. They are held from now on."""
        slices: list[RecordSlice] = []
        for part in self._parts:
            offsets = part.renewed - part.acknowledged.keys()
            if offsets:
                part.renewed -= offsets
                part.held |= offsets
                slices.extend(run for each in part.slices for run in select_rows(each, offsets))
        return slices

    def hold_renewed(self) -> None:
        """Keep the renewed records held, without returning them again."""
        for part in self._parts:
            part.held |= part.renewed
            part.renewed.clear()
            part.slices.clear()

    def clear(self) -> None:
        """Forget all records: the user may not acknowledge them any more."""
        self._parts.clear()
        self.last_slices = []
        self.is_returned = True

    def _part(self, partition: ShareTopicPartition, node_id: int, generation: int) -> DeliveredPart:
        for part in self._parts:
            if (part.partition, part.node_id, part.generation) == (partition, node_id, generation):
                return part
        part = DeliveredPart(partition, node_id, generation)
        self._parts.append(part)
        return part

    def _drop_empty(self) -> None:
        self._parts = [part for part in self._parts if not part.is_empty()]


def select_rows(slice_: RecordSlice, offsets: set[int]) -> list[RecordSlice]:
    """Return the rows with these offsets."""
    return list(slice_.runs_where(lambda record: record.offset in offsets))
