from __future__ import annotations

from uuid import UUID

import pytest

from ottla.coordination.cluster.node_records import NoOpRecord
from ottla.coordination.cluster.records import PartitionChangeRecord
from ottla.coordination.cluster.registration import Registration
from ottla.coordination.lifecycle.handing_over import is_awaited
from ottla.protocol.schema import Message

CHANGE = PartitionChangeRecord(0, UUID(int=7), leader=2)


def broker(*, leaving: bool = False, fenced: bool = False) -> Registration:
    return Registration(1, 5, UUID(int=1), (), (), fenced=fenced, in_controlled_shutdown=leaving)


@pytest.mark.parametrize(
    ("others", "applied", "awaited"),
    [
        ([broker(), broker(leaving=True)], [NoOpRecord(), CHANGE], True),
        ([broker(leaving=True)], [NoOpRecord()], False),
        ([broker(leaving=True)], [], False),
        ([broker(leaving=True)], None, True),  # a snapshot, which may be about anything
        ([broker()], None, False),
        ([broker()], [CHANGE], False),
        ([broker(leaving=True, fenced=True)], [CHANGE], False),  # it has gone
    ],
)
def test_what_changes_while_a_broker_hands_over_is_awaited(
    others: list[Registration], applied: list[Message] | None, awaited: bool
) -> None:
    assert is_awaited(others, applied) is awaited
