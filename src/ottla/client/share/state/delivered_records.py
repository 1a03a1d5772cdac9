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
    UniformTypes,
)
from ottla.errors import IllegalStateError
from ottla.model import TopicPartition

UNKNOWN = "cannot acknowledge offset {} of {}: the record is not held by this consumer, or its acknowledgement was sent"
UNACKNOWLEDGED = (
    "{} records are not acknowledged, the first at offset {} of {}: with share.acknowledgement.mode=explicit, "
    "acknowledge all records of a poll before the next poll"
)


class DeliveredPart:
    """Records of one partition that were acquired in one share session.

    Most programs acknowledge all records of a `poll` in the same way. So consecutive offsets are kept as ranges until the
    program refers to one of them.
    """

    def __init__(self, partition: ShareTopicPartition, node_id: int, generation: int) -> None:
        self.partition = partition
        self.node_id = node_id
        self.generation = generation
        """The session in which the records were acquired."""
        self.slices: list[RecordSlice] = []
        """The records, for returning renewed ones again."""
        self.held: set[int] = set()
        """The offsets that the user must acknowledge, without those of the ranges."""
        self.failed: set[int] = set()
        """The offsets of records that could not be read; they have an acknowledgement, which the user may replace."""
        self.acknowledged: dict[int, int] = {}
        """The acknowledgements that were not taken yet."""
        self.renewing: set[int] = set()
        self.renewed: set[int] = set()
        self._ranges: list[range] = []
        """Held offsets without an acknowledgement."""
        self._acknowledged_ranges: list[range] = []
        """Held offsets with the acknowledgement `_kind`."""
        self._kind = 0

    @property
    def held_count(self) -> int:
        return len(self.held) + sum(map(len, self._ranges)) + sum(map(len, self._acknowledged_ranges))

    def is_empty(self) -> bool:
        ranges = self._ranges or self._acknowledged_ranges
        return not (ranges or self.held or self.acknowledged or self.renewing or self.renewed)

    def hold(self, slices: Iterable[RecordSlice]) -> None:
        """Add the offsets of records that the user must acknowledge."""
        for each in slices:
            offsets = each.source.columns.offsets
            first, last = offsets[each.start], offsets[each.stop - 1]
            ranges = (*self._ranges, *self._acknowledged_ranges)
            if any(first < some.stop and some.start <= last for some in ranges):
                self.expand()  # delivered again, after their locks have expired
            if self.held or last - first + 1 != each.stop - each.start:
                self.expand()
                self.held.update(offsets[each.start : each.stop])
                continue
            if not self._ranges or self._ranges[-1].stop != first:
                self._ranges.append(range(first, last + 1))
            else:
                self._ranges[-1] = range(self._ranges[-1].start, last + 1)

    def expand(self) -> None:
        """Keep each offset by itself."""
        self.held.update(*self._ranges, *self._acknowledged_ranges)
        for each in self._acknowledged_ranges:
            self.acknowledged.update(dict.fromkeys(each, self._kind))
        self._ranges, self._acknowledged_ranges = [], []

    def acknowledge(self, offset: int, kind: int) -> bool:
        """Acknowledge a record. Return False if the user does not hold it."""
        if self._ranges or self._acknowledged_ranges:
            self.expand()
        if offset in self.held or any(offset in each for each in (self.failed, self.renewing, self.renewed)):
            self.acknowledged[offset] = kind
            return True
        return False

    def acknowledge_all(self, kind: int) -> None:
        """Acknowledge all held records that are not acknowledged yet."""
        if kind == AcknowledgeType.RENEW or self._acknowledged_ranges:
            self.expand()
        self._acknowledged_ranges, self._ranges, self._kind = self._ranges, [], kind
        for offset in self.held:
            self.acknowledged.setdefault(offset, kind)

    def unacknowledged(self) -> Iterator[int]:
        """Yield the offsets that the user has not acknowledged, in order."""
        if self._ranges:
            self.expand()
        return (offset for offset in sorted(self.held) if offset not in self.acknowledged)

    def forget(self, offsets: set[int]) -> None:
        """Forget records that were delivered again."""
        self.expand()
        for each in (self.held, self.failed, self.renewing, self.renewed):
            each -= offsets
        for offset in offsets & self.acknowledged.keys():
            del self.acknowledged[offset]

    def take(self) -> Mapping[int, int]:
        """Return the acknowledgements. Those of terminal types end the user's hold of the record."""
        if self._acknowledged_ranges and not self.acknowledged:
            ranges, self._acknowledged_ranges = self._acknowledged_ranges, []
            return UniformTypes(ranges, self._kind)
        if self._acknowledged_ranges:
            self.expand()
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
        return sum(part.held_count for part in self._parts)

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
        part.hold(slices)
        part.acknowledged.update(automatic)
        part.failed.update(failed)
        for other in self._parts:
            if other.partition == partition and other is not part:
                # Their lock has expired, or their session has ended.
                other.forget(
                    {offset for each in slices for offset in each.source.columns.offsets[each.start : each.stop]}
                )

    def acknowledge(self, tp: TopicPartition, offset: int, kind: AcknowledgeType) -> None:
        """Acknowledge a record. A later acknowledgement replaces an earlier one that was not sent."""
        for part in reversed(self._parts):
            if part.partition.tp == tp and part.acknowledge(offset, int(kind)):
                return
        raise IllegalStateError(UNKNOWN.format(offset, tp))

    def acknowledge_all(self, kind: AcknowledgeType) -> None:
        """Acknowledge all records that are not acknowledged yet."""
        for part in self._parts:
            part.acknowledge_all(int(kind))

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
        renewals = result.sent.renewals
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
