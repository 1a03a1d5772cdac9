"""`ottla topics create | alter | list | describe | delete`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.consent import confirm_at_terminal, yes_option
from ottla.cli.near_names import reject_unknown_configs, suggest_similar_names
from ottla.cli.options import (
    PATIENCE_SECONDS,
    bootstrap_server,
    client_settings,
    json_option,
    list_options,
    names_argument,
    pairs_of,
    read_as_usage,
    reject_both,
    settings_option,
    usage_error,
)
from ottla.cli.output import echo, prints_table
from ottla.cli.tables import cell_text, format_size, format_table, show
from ottla.errors import ErrorCode, KafkaError
from ottla.escaping import escape_controls
from ottla.kafka_id import text_of

if TYPE_CHECKING:
    from ottla.client.admin import Admin, LogDirDescription, TopicDescription

HEADINGS = ("partition", "leader", "replicas", "in sync", "first offset", "end offset")
LIST = ("TOPIC", "TOPIC-ID", "INTERNAL")
LONG = ("TOPIC", "PARTITIONS", "REPLICAS", "RECORDS", "SIZE")
LOST = ("TOPIC", "PARTITIONS", "RECORDS")
Row = tuple[Any, ...]


@click.group(cls=CommandGroup)
def topics() -> None:
    """Create, alter, list, describe and delete topics."""


@topics.command()
@names_argument("names", "topic", "NAME")
@bootstrap_server
@click.option(
    "-p", "--partitions", type=click.IntRange(1), help="Number of partitions.  [default: the broker's choice]"
)
@click.option(
    "--replication-factor", type=click.IntRange(1), help="Number of replicas.  [default: the broker's choice]"
)
@click.option(
    "--config",
    "configs",
    metavar="KEY=VALUE",
    multiple=True,
    help="A config of the topic, such as retention.ms=3600000.",
)
@settings_option("client")
def create(
    names: tuple[str, ...],
    bootstrap_server: str,
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[str, ...],
    settings: tuple[str, ...],
) -> None:
    """Create topics."""
    from ottla.client.admin import NewTopic

    wanted = pairs_of("--config", configs)
    with admin_at(bootstrap_server, settings) as admin:
        admin.create_topics(NewTopic(name, partitions or -1, replication_factor or -1, wanted) for name in names)


@topics.command()
@names_argument("names", "topic", "NAME")
@bootstrap_server
@click.option("-p", "--partitions", type=click.IntRange(1), help="New number of partitions; it cannot decrease.")
@click.option(
    "--config", "configs", metavar="KEY=VALUE", multiple=True, help="A config to set, such as retention.ms=3600000."
)
@click.option("--delete-config", "unset", metavar="KEY", multiple=True, help="A config to reset to its default.")
@settings_option("client")
def alter(
    names: tuple[str, ...],
    bootstrap_server: str,
    partitions: int | None,
    configs: tuple[str, ...],
    unset: tuple[str, ...],
    settings: tuple[str, ...],
) -> None:
    """Change the number of partitions or the configs of topics. Other configs do not change."""
    from ottla.client.admin import ConfigResource

    wanted: dict[str, str | None] = {**pairs_of("--config", configs), **dict.fromkeys(unset)}
    if partitions is None and not wanted:
        raise usage_error("nothing to alter: expected --partitions, --config or --delete-config")
    changes = {ConfigResource("topic", name): wanted for name in names if wanted}
    with admin_at(bootstrap_server, settings) as admin, suggest_similar_names(admin, names):
        if changes:
            with reject_unknown_configs(admin, changes):
                admin.alter_configs(changes)
        if partitions is not None:
            admin.create_partitions(dict.fromkeys(names, partitions))


@topics.command("list")
@bootstrap_server
@click.option("--internal", is_flag=True, help="List internal topics too.")
@list_options
@json_option
@settings_option("client")
def list_topics(
    bootstrap_server: str, internal: bool, long: bool, names_only: bool, in_json: bool, settings: tuple[str, ...]
) -> None:
    """Print all topics: at a terminal with partitions, replicas, records and size, else the names, one per line.

    RECORDS is the number of offsets from the first record to the end. SIZE is that of all replicas, in JSON in bytes.
    """
    reject_both(long, names_only)
    with admin_at(bootstrap_server, settings) as admin:
        if long or (not in_json and prints_table(names_only)):
            show(LONG, long_rows(admin, internal=internal, readable=not in_json), in_json=in_json)
            return
        found = admin.list_topics(internal=internal)
    if in_json:
        show(LIST, [(each.name, text_of(each.topic_id), each.internal) for each in found.values()], in_json=True)
        return
    for name in found:
        echo(escape_controls(name))


def long_rows(admin: Admin, *, internal: bool, readable: bool) -> list[Row]:
    """Return a row per topic. Sizes are unknown to users without the right to see the brokers' directories."""
    topics = [topic for topic in admin.describe_topics().values() if internal or not topic.internal]
    records = {name: count for name, _, count in count_records(admin, topics)}
    try:
        sizes = sizes_of_topics(admin.describe_log_dirs())
    except KafkaError as error:
        if error.code != ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        sizes = Counter()
    return [
        (
            topic.name,
            len(topic.partitions),
            max((len(partition.replicas) for partition in topic.partitions), default=0),
            records[topic.name],
            format_size(sizes.get(topic.name)) if readable else sizes.get(topic.name),
        )
        for topic in topics
    ]


def sizes_of_topics(found: Mapping[int, Mapping[str, LogDirDescription]]) -> Counter[str]:
    """Return the size of each topic in bytes, of all replicas together."""
    sizes: Counter[str] = Counter()
    for directories in found.values():
        for directory in directories.values():
            for tp, replica in directory.replica_infos.items():
                sizes[tp.topic] += replica.size
    return sizes


@topics.command()
@names_argument("names", "topic", "NAME", required=False)
@bootstrap_server
@json_option
@settings_option("client")
def describe(names: tuple[str, ...], bootstrap_server: str, in_json: bool, settings: tuple[str, ...]) -> None:
    """Print the partitions of topics with their leaders and offsets; without a name, of all topics."""
    with admin_at(bootstrap_server, settings) as admin, suggest_similar_names(admin, names):
        found = admin.describe_topics(names or None).values()
        rows = rows_of(admin, [topic for topic in found if names or not topic.internal])
    if in_json:
        whole = [(topic.name, text_of(topic.topic_id), *row) for topic, some in rows.items() for row in some]
        show(("TOPIC", "TOPIC-ID", *HEADINGS), whole, in_json=True)
        return
    for topic, some in rows.items():
        echo(describe_topic(topic, some))


@topics.command()
@names_argument("names", "topic", "NAME")
@bootstrap_server
@yes_option
@settings_option("client")
def delete(names: tuple[str, ...], bootstrap_server: str, agreed: bool, settings: tuple[str, ...]) -> None:
    """Delete topics with their records; none if one does not exist. At a terminal it asks for confirmation."""
    with admin_at(bootstrap_server, settings) as admin, suggest_similar_names(admin, names):
        found = admin.describe_topics(names).values()
        confirm_at_terminal(
            lambda: format_table(LOST, count_records(admin, found)), "Delete them permanently?", agreed=agreed
        )
        admin.delete_topics(names)


def count_records(admin: Admin, found: Collection[TopicDescription]) -> list[tuple[str, int, int]]:
    """Return each topic with its number of records; partitions without a leader are not counted."""
    return [
        (topic.name, len(rows), sum(row[-1] - row[-2] for row in rows if None not in row[-2:]))
        for topic, rows in rows_of(admin, found).items()
    ]


def admin_at(bootstrap: str, settings: tuple[str, ...]) -> Admin:
    """Return an admin client with a short timeout."""
    from ottla.client.admin import Admin

    with read_as_usage():
        return Admin(client_settings(bootstrap, settings, default_api_timeout_ms=int(PATIENCE_SECONDS * 1000)))


def rows_of(admin: Admin, topics: Collection[TopicDescription]) -> dict[TopicDescription, list[Row]]:
    """Return a row per partition; offsets, requested together, are None without a leader."""
    from ottla.model import EARLIEST, LATEST, TopicPartition

    with_leader = [
        TopicPartition(topic.name, p.partition) for topic in topics for p in topic.partitions if p.leader >= 0
    ]
    first, end = (admin.list_offsets(dict.fromkeys(with_leader, when)) for when in (EARLIEST, LATEST))
    rows: dict[TopicDescription, list[Row]] = {topic: [] for topic in topics}
    for topic in topics:
        for p in sorted(topic.partitions, key=lambda p: p.partition):
            partition = TopicPartition(topic.name, p.partition)
            offsets = (found[partition].offset if partition in found else None for found in (first, end))
            leader = p.leader if p.leader >= 0 else None
            rows[topic].append((p.partition, leader, p.replicas, p.in_sync_replicas, *offsets))
    return rows


def describe_topic(topic: TopicDescription, rows: Sequence[Row]) -> str:
    """Return the table of a topic under a headline."""
    count = len(topic.partitions)
    cells = [[cell_text(cell) if n != 1 or cell is not None else "none" for n, cell in enumerate(row)] for row in rows]
    return f"{escape_controls(topic.name)}: {count} partition{'s' * (count != 1)}, id {text_of(topic.topic_id)}\n{table([HEADINGS, *cells])}\n"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table with right-aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
