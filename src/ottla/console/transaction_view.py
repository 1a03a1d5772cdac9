"""Views of transactional ids, those with an open transaction first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ottla.console.views import View

if TYPE_CHECKING:
    from ottla.client.admin import ProducerState, TransactionDescription, TransactionListing
    from ottla.model import TopicPartition

UNDER_WAY = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")


def chosen_transactions(
    listings: Iterable[TransactionListing], text: str, most: int
) -> tuple[int, list[TransactionListing]]:
    """Return the number of ids that contain `text`, and the ones to show."""
    found = [each for each in listings if text.lower() in each.transactional_id.lower()]
    found.sort(key=lambda each: (each.state not in UNDER_WAY, each.transactional_id))
    return len(found), found[:most]


def transaction_row(listing: TransactionListing, now_ms: int, described: TransactionDescription | None) -> View:
    """Return the row of an id; only an open transaction has an age."""
    began = None if described is None else described.transaction_start_time_ms
    return {
        "name": listing.transactional_id,
        "state": listing.state,
        "producer": listing.producer_id,
        "coordinator": listing.coordinator_id,
        "age_ms": None if began is None else max(0, now_ms - began),
        "timeout_ms": None if described is None else described.transaction_timeout_ms,
    }


def transaction_view(
    described: TransactionDescription, producers: Mapping[TopicPartition, tuple[ProducerState, ...]]
) -> View:
    """Return a transactional id with the state of its producer in each partition."""
    return {
        "name": described.transactional_id,
        "state": described.state,
        "producer": described.producer_id,
        "epoch": described.producer_epoch,
        "coordinator": described.coordinator_id,
        "timeout_ms": described.transaction_timeout_ms,
        "began_ms": described.transaction_start_time_ms,
        "partitions": [
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "from": next(
                    (
                        each.current_transaction_start_offset
                        for each in producers.get(tp, ())
                        if each.producer_id == described.producer_id
                    ),
                    None,
                ),
            }
            for tp in sorted(described.topic_partitions)
        ],
    }
