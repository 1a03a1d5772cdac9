from __future__ import annotations

from uuid import UUID

import pytest

from ottla.coordination.cluster.node_records import NoOpRecord
from ottla.coordination.cluster.records import PartitionChangeRecord
from ottla.coordination.cluster.registration import BrokerRegistration
from ottla.coordination.lifecycle.controlled_shutdown import should_report_at_once
from ottla.protocol.schema import Message

CHANGE = PartitionChangeRecord(0, UUID(int=7), leader=2)


def broker(*, leaving: bool = False, fenced: bool = False) -> BrokerRegistration:
    return BrokerRegistration(1, 5, UUID(int=1), (), (), fenced=fenced, in_controlled_shutdown=leaving)


@pytest.mark.parametrize(
    ("others", "applied", "awaited"),
    [
        ([broker(), broker(leaving=True)], [NoOpRecord(), CHANGE], True),
        ([broker(leaving=True)], [NoOpRecord()], False),
        ([broker(leaving=True)], [], False),
        ([broker(leaving=True)], None, True),  # a snapshot, which may be about anything
        ([broker()], None, False),
        ([broker()], [CHANGE], False),
        ([broker(leaving=True, fenced=True)], [CHANGE], False),  # it has stopped
    ],
)
def test_changes_during_a_controlled_shutdown_are_awaited(
    others: list[BrokerRegistration], applied: list[Message] | None, awaited: bool
) -> None:
    assert should_report_at_once(others, applied) is awaited
