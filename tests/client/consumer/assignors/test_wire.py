"""Subscriptions and assignments as bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ottla.client.consumer.assignors import Assignment, Subscription
from ottla.client.consumer.assignors.wire import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from ottla.model import TopicPartition

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
PARTITIONS = st.lists(st.builds(TopicPartition, NAMES, st.integers(0, 2**31 - 1)), unique=True, max_size=6)
DATA = st.none() | st.binary(max_size=8)


@given(
    topics=st.lists(NAMES, unique=True),
    user_data=DATA,
    owned=PARTITIONS,
    generation=st.integers(-1, 2**31 - 1),
    rack=st.none() | NAMES,
)
def test_a_subscription_is_decoded_in_order(
    topics: list[str], user_data: bytes | None, owned: list[TopicPartition], generation: int, rack: str | None
) -> None:
    fields = {"user_data": user_data, "generation_id": generation, "rack_id": rack}
    sent = Subscription(topics=topics, owned_partitions=owned, **fields)  # type: ignore[arg-type]
    read = decode_subscription(encode_subscription(sent), "static")
    assert read == Subscription(
        topics=tuple(sorted(topics)),
        owned_partitions=tuple(sorted(owned)),
        group_instance_id="static",
        **fields,  # type: ignore[arg-type]
    )


@given(PARTITIONS, DATA)
def test_an_assignment_is_decoded_in_order(partitions: list[TopicPartition], user_data: bytes | None) -> None:
    read = decode_assignment(encode_assignment(Assignment(partitions, user_data)))
    assert read == Assignment(tuple(sorted(partitions)), user_data)


def test_no_bytes_are_an_empty_assignment() -> None:
    assert decode_assignment(b"") == Assignment()


def test_an_older_member_sends_fewer_fields() -> None:
    sent = Subscription(topics=("t",), owned_partitions=(TopicPartition("t", 1),), generation_id=3, rack_id="r")
    assert decode_subscription(encode_subscription(sent, 0)) == Subscription(topics=("t",))
