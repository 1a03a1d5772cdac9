"""`ottla transactions list | describe | describe-producers | find-hanging | abort`."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.options import bootstrap_server, chosen_partitions, json_option, known_name, settings_option, usage_error
from ottla.cli.tables import show
from ottla.cli.topics import admin_at

if TYPE_CHECKING:
    from ottla.client.admin import AbortTransactionSpec, Admin, ProducerState
    from ottla.model import TopicPartition

LIST = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
DESCRIBE = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)
PRODUCERS = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
HANGING = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)
LONGEST_MINUTES = 15
"""Kafka's default of transaction.max.timeout.ms, in minutes."""
STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
)
"""Kafka's state names, including those that Ottla's brokers do not use."""
UNDER_WAY = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")


@click.group(cls=CommandGroup)
def transactions() -> None:
    """List and describe transactions, find hanging ones and abort them."""


@transactions.command("list")
@bootstrap_server
@click.option(
    "--state", "states", metavar="STATE", multiple=True, help="Only transactions in this state, such as Ongoing."
)
@click.option(
    "--duration-filter", metavar="MS", type=click.IntRange(0), help="Only transactions that are open for longer."
)
@click.option("--transactional-id-pattern", metavar="REGEX", help="Only transactional ids that match entirely.")
@json_option
@settings_option("client")
def list_transactions(
    bootstrap_server: str,
    states: tuple[str, ...],
    duration_filter: int | None,
    transactional_id_pattern: str | None,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Print all transactional ids."""
    states = tuple(known_name("state", each, STATES) for each in states)
    longer = -1 if duration_filter is None else duration_filter
    with admin_at(bootstrap_server, settings) as admin:
        found = admin.list_transactions(
            states=states, longer_than_ms=longer, transactional_id_pattern=transactional_id_pattern
        )
    rows = [(each.transactional_id, each.coordinator_id, each.producer_id, each.state) for each in found]
    show(LIST, rows, in_json=in_json)


@transactions.command()
@click.argument("names", metavar="TRANSACTIONAL_ID...", nargs=-1, required=True)
@bootstrap_server
@json_option
@settings_option("client")
def describe(names: tuple[str, ...], bootstrap_server: str, in_json: bool, settings: tuple[str, ...]) -> None:
    """Print the states of transactional ids."""
    with admin_at(bootstrap_server, settings) as admin:
        found = admin.describe_transactions(names).values()
    now_ms = time.time_ns() // 1_000_000
    rows = []
    for each in found:
        started = each.transaction_start_time_ms if each.state in UNDER_WAY else None
        lasts = None if started is None else now_ms - started
        partitions = ",".join(map(str, each.topic_partitions))
        identity = (each.coordinator_id, each.transactional_id, each.producer_id, each.producer_epoch)
        rows.append((*identity, each.state, each.transaction_timeout_ms, started, lasts, partitions))
    show(DESCRIBE, rows, in_json=in_json)


@transactions.command("describe-producers")
@click.argument("topic")
@bootstrap_server
@click.option("-p", "--partition", type=click.IntRange(0), required=True, help="The partition.")
@click.option("--broker-id", type=int, help="Query this broker instead of the leader.")
@json_option
@settings_option("client")
def describe_producers(
    topic: str,
    bootstrap_server: str,
    partition: int,
    broker_id: int | None,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Print the producers with a producer id that wrote to a partition of TOPIC."""
    from ottla.model import TopicPartition

    tp = TopicPartition(topic, partition)
    with admin_at(bootstrap_server, settings) as admin:
        found = admin.describe_producers([tp], broker_id=broker_id)[tp]
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.current_transaction_start_offset,
        )
        for each in found
    ]
    show(PRODUCERS, rows, in_json=in_json)


@transactions.command("find-hanging")
@bootstrap_server
@click.option(
    "-t",
    "--topic",
    "topics",
    metavar="TOPIC[:P,...]",
    multiple=True,
    help="Check only this topic, or some of its partitions.",
)
@click.option("--broker-id", type=int, help="Query this broker instead of the leaders.")
@click.option(
    "--max-transaction-timeout",
    metavar="MINUTES",
    type=click.FloatRange(0),
    default=LONGEST_MINUTES,
    show_default=True,
    help="A transaction is hanging if it is idle for longer and no coordinator knows it.",
)
@json_option
@settings_option("client")
def find_hanging(
    bootstrap_server: str,
    topics: tuple[str, ...],
    broker_id: int | None,
    max_transaction_timeout: float,
    in_json: bool,
    settings: tuple[str, ...],
) -> None:
    """Find open transactions that no coordinator will end; they delay consumers with read_committed."""
    with admin_at(bootstrap_server, settings) as admin:
        partitions = chosen_partitions(admin, topics or list(admin.list_topics(internal=True)))
        now_ms = time.time_ns() // 1_000_000
        before_ms = now_ms - max_transaction_timeout * 60_000
        found = hanging_in(admin, partitions, before_ms, broker_id)
    rows = [hanging_row(tp, each, now_ms) for tp, each in found]
    show(HANGING, rows, in_json=in_json)


def hanging_in(
    admin: Admin, partitions: Iterable[TopicPartition], before_ms: float, broker_id: int | None = None
) -> list[tuple[TopicPartition, ProducerState]]:
    """Return producers with an open transaction, no write since `before_ms`, and no coordinator that knows it."""
    found = admin.describe_producers(partitions, broker_id=broker_id)
    late = [
        (tp, producer)
        for tp, producers in sorted(found.items())
        for producer in producers
        if producer.current_transaction_start_offset is not None and producer.last_timestamp <= before_ms
    ]
    return [(tp, each) for tp, each in late if not is_known(admin, tp, each)]


def hanging_row(tp: TopicPartition, producer: ProducerState, now_ms: int) -> tuple[object, ...]:
    return (
        tp.topic,
        tp.partition,
        producer.producer_id,
        producer.producer_epoch,
        producer.coordinator_epoch,
        producer.current_transaction_start_offset,
        producer.last_timestamp,
        (now_ms - producer.last_timestamp) // 60_000,
    )


def is_known(admin: Admin, tp: TopicPartition, producer: ProducerState) -> bool:
    """Return true if a coordinator has the partition in a transaction of the producer, and so will end it."""
    listed = admin.list_transactions(producer_ids=[producer.producer_id])
    found = admin.describe_transactions(each.transactional_id for each in listed).values()
    return any(
        each.producer_id == producer.producer_id and each.state in UNDER_WAY and tp in each.topic_partitions
        for each in found
    )


@transactions.command()
@click.argument("topic")
@bootstrap_server
@click.option("-p", "--partition", type=click.IntRange(0), required=True, help="The partition of the transaction.")
@click.option(
    "--start-offset", type=click.IntRange(0), help="First offset of the transaction, as printed by find-hanging."
)
@click.option("--producer-id", type=int, help="Instead of --start-offset, with both epochs.")
@click.option("--producer-epoch", type=int)
@click.option("--coordinator-epoch", type=int)
@settings_option("client")
def abort(
    topic: str,
    bootstrap_server: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
    settings: tuple[str, ...],
) -> None:
    """Abort a hanging transaction in a partition of TOPIC; its records there are not committed."""
    from ottla.client.admin import AbortTransactionSpec
    from ottla.model import TopicPartition

    tp = TopicPartition(topic, partition)
    if (start_offset is None) == (producer_id is None):
        raise usage_error("expected either --start-offset, or --producer-id with both epochs")
    with admin_at(bootstrap_server, settings) as admin:
        if start_offset is not None:
            spec = spec_at(tp, start_offset, admin.describe_producers([tp])[tp])
        elif producer_id is None or producer_epoch is None or coordinator_epoch is None:
            raise usage_error("--producer-id needs --producer-epoch and --coordinator-epoch")
        else:
            spec = AbortTransactionSpec(tp, producer_id, producer_epoch, coordinator_epoch)
        admin.abort_transaction(spec)


def spec_at(tp: TopicPartition, start_offset: int, producers: tuple[ProducerState, ...]) -> AbortTransactionSpec:
    """Return the abort specification of the transaction that starts at an offset."""
    from ottla.client.admin import AbortTransactionSpec

    for producer in producers:
        if producer.current_transaction_start_offset == start_offset:
            # Without any marker the coordinator epoch is unknown (-1); the first one is 0.
            epoch = max(0, producer.coordinator_epoch)
            return AbortTransactionSpec(tp, producer.producer_id, producer.producer_epoch, epoch)
    raise click.ClickException(f"no open transaction in {tp} starts at offset {start_offset}")
