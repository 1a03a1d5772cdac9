"""The records that a user holds, from `poll` to their acknowledgement."""

from __future__ import annotations

import pytest

from ottla.client.consumer.records import ConsumerRecords
from ottla.client.share.state.acknowledgements import GAP, Acknowledgements, AcknowledgeResult, AcknowledgeType
from ottla.client.share.state.delivered_records import DeliveredRecords
from ottla.errors import ErrorCode, IllegalStateError, KafkaError
from tests.client.share.records import PARTITION, batch, completed

ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType
EXPIRED = KafkaError(ErrorCode.INVALID_RECORD_STATE)


@pytest.fixture
def delivered() -> DeliveredRecords:
    """Offsets 0 to 2 were delivered."""
    found = DeliveredRecords()
    portion = completed(batch(0), acquired=[(0, 2, 1)]).fetch_records(500)
    found.add(PARTITION, 1, 0, portion.slices, portion.automatic, portion.failed)
    return found


def take(delivered: DeliveredRecords) -> dict[int, int]:
    return {offset: kind for each, _ in delivered.take(60.0) for offset, kind in each.types.items()}


def finish(delivered: DeliveredRecords, types: dict[int, int], error: Exception | None = None) -> None:
    delivered.handle_result(AcknowledgeResult(Acknowledgements(1, PARTITION, types, 60.0), error))


def test_all_records_are_accepted_at_once(delivered: DeliveredRecords) -> None:
    delivered.acknowledge_all(ACCEPT)

    assert take(delivered) == {0: ACCEPT, 1: ACCEPT, 2: ACCEPT}
    assert delivered.is_empty


def test_each_record_has_its_own_acknowledgement_and_the_last_one_counts(delivered: DeliveredRecords) -> None:
    delivered.acknowledge(PARTITION.tp, 0, ACCEPT)
    delivered.acknowledge(PARTITION.tp, 1, ACCEPT)
    delivered.acknowledge(PARTITION.tp, 1, RELEASE)
    delivered.acknowledge(PARTITION.tp, 2, REJECT)

    delivered.require_acknowledged()
    assert take(delivered) == {0: ACCEPT, 1: RELEASE, 2: REJECT}


def test_records_without_an_acknowledgement_are_reported_and_stay(delivered: DeliveredRecords) -> None:
    delivered.acknowledge(PARTITION.tp, 1, ACCEPT)

    with pytest.raises(IllegalStateError, match=r"^2 records are not acknowledged, the first at offset 0 of t-0"):
        delivered.require_acknowledged()

    assert take(delivered) == {1: ACCEPT}
    assert delivered.held_count == 2


@pytest.mark.parametrize("offset", [3, 99])
def test_a_record_that_was_not_delivered_cannot_be_acknowledged(delivered: DeliveredRecords, offset: int) -> None:
    with pytest.raises(IllegalStateError, match=f"cannot acknowledge offset {offset} of t-0"):
        delivered.acknowledge(PARTITION.tp, offset, ACCEPT)


def test_a_sent_acknowledgement_cannot_be_changed(delivered: DeliveredRecords) -> None:
    delivered.acknowledge_all(ACCEPT)
    delivered.take(60.0)

    with pytest.raises(IllegalStateError, match="its acknowledgement was sent"):
        delivered.acknowledge(PARTITION.tp, 0, RELEASE)


def test_a_renewed_record_is_returned_again_and_must_be_acknowledged_again(delivered: DeliveredRecords) -> None:
    delivered.acknowledge_all(ACCEPT)
    delivered.acknowledge(PARTITION.tp, 1, RENEW)

    taken = take(delivered)
    assert delivered.take_renewed() == []
    finish(delivered, taken)

    assert [record.offset for record in ConsumerRecords(delivered.take_renewed())] == [1]
    with pytest.raises(IllegalStateError, match="offset 1 of t-0"):
        delivered.require_acknowledged()
    delivered.acknowledge(PARTITION.tp, 1, ACCEPT)
    assert take(delivered) == {1: ACCEPT}
    assert delivered.is_empty


def test_a_renewed_record_may_be_acknowledged_without_another_poll(delivered: DeliveredRecords) -> None:
    delivered.acknowledge_all(RENEW)
    finish(delivered, take(delivered))

    delivered.acknowledge(PARTITION.tp, 0, ACCEPT)

    assert [record.offset for record in ConsumerRecords(delivered.take_renewed())] == [1, 2]
    assert take(delivered) == {0: ACCEPT}


def test_a_record_may_be_acknowledged_while_its_renewal_is_in_flight(delivered: DeliveredRecords) -> None:
    delivered.acknowledge_all(RENEW)
    renewals = take(delivered)
    delivered.acknowledge(PARTITION.tp, 0, ACCEPT)
    assert take(delivered) == {0: ACCEPT}

    finish(delivered, renewals)

    assert [record.offset for record in ConsumerRecords(delivered.take_renewed())] == [1, 2]


def test_a_failed_renewal_loses_the_record(delivered: DeliveredRecords) -> None:
    delivered.acknowledge_all(RENEW)
    taken = take(delivered)
    assert delivered.is_renewing

    finish(delivered, taken, EXPIRED)

    assert delivered.is_empty
    assert delivered.take_renewed() == []
    with pytest.raises(IllegalStateError, match="cannot acknowledge"):
        delivered.acknowledge(PARTITION.tp, 0, ACCEPT)


def test_gaps_are_acknowledged_without_the_user() -> None:
    delivered = DeliveredRecords()
    portion = completed(batch(0), acquired=[(0, 4, 1)]).fetch_records(500)
    delivered.add(PARTITION, 1, 0, portion.slices, portion.automatic, portion.failed)

    delivered.acknowledge_all(ACCEPT)

    assert take(delivered) == {0: ACCEPT, 1: ACCEPT, 2: ACCEPT, 3: GAP, 4: GAP}


def test_the_user_may_decide_about_a_record_that_cannot_be_read() -> None:
    delivered = DeliveredRecords()
    delivered.add(PARTITION, 1, 0, [], {5: int(RELEASE)}, [5])
    delivered.require_acknowledged()

    delivered.acknowledge(PARTITION.tp, 5, REJECT)

    assert take(delivered) == {5: REJECT}
    assert delivered.is_empty


def test_acknowledgements_name_the_session_of_their_records(delivered: DeliveredRecords) -> None:
    portion = completed(batch(3), acquired=[(3, 5, 1)]).fetch_records(500)
    delivered.add(PARTITION, 1, 7, portion.slices, {})
    delivered.acknowledge_all(ACCEPT)

    assert [(sorted(each.types), generation) for each, generation in delivered.take(60.0)] == [
        ([0, 1, 2], 0),
        ([3, 4, 5], 7),
    ]


def test_records_that_are_delivered_again_in_the_same_session_are_acknowledged_once(
    delivered: DeliveredRecords,
) -> None:
    portion = completed(batch(0), acquired=[(0, 2, 2)]).fetch_records(500)
    delivered.add(PARTITION, 1, 0, portion.slices, {}, ())

    assert delivered.held_count == 3
    delivered.acknowledge_all(ACCEPT)
    ((taken, _),) = delivered.take(60.0)
    assert (len(taken.types), dict(taken.types)) == (3, {0: ACCEPT, 1: ACCEPT, 2: ACCEPT})


def test_an_acknowledgement_of_all_does_not_replace_one_of_a_single_record(delivered: DeliveredRecords) -> None:
    delivered.acknowledge(PARTITION.tp, 1, REJECT)
    delivered.acknowledge_all(ACCEPT)

    assert take(delivered) == {0: ACCEPT, 1: REJECT, 2: ACCEPT}
    assert delivered.is_empty


def test_a_single_record_can_be_acknowledged_again_after_all_were(delivered: DeliveredRecords) -> None:
    delivered.acknowledge_all(ACCEPT)
    delivered.acknowledge(PARTITION.tp, 2, RELEASE)

    assert take(delivered) == {0: ACCEPT, 1: ACCEPT, 2: RELEASE}
