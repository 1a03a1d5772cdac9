"""Collect facts about a cluster. Each check is one or two requests; nothing is changed."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from ottla.cli.doctor.cluster import GroupFacts, TopicFacts, TransactionFacts
from ottla.cli.doctor.network import AddressFacts
from ottla.cli.groups.groups import REBALANCING
from ottla.cli.transactions import LONGEST_MINUTES, UNDER_WAY, hanging_in
from ottla.errors import OttlaError
from ottla.model import EARLIEST, LATEST, PartitionInfo, TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin import Admin

CONNECT_SECONDS = 3.0
STUCK_SECONDS = 3.0
"""The time for which a group is observed while it is rebalancing."""
UPDATE_SECONDS = 0.25
AT_ONCE = 16
MOST_GROUPS = 500
OURS = "metrics.listen"
"""A config that only Ottla's brokers have."""
CONFIGS = ("min.insync.replicas", "retention.ms", "cleanup.policy")


def check_addresses(places: Iterable[tuple[str, int]]) -> list[AddressFacts]:
    """Connect to all addresses at the same time, since an unreachable one needs the whole timeout."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda place: check_address(*place), places))


def check_address(host: str, port: int) -> AddressFacts:
    """Resolve a name and open a connection, which is closed again."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return AddressFacts(host, port, unresolved=getattr(error, "strerror", None) or str(error))
    addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
    trouble = None
    for address in addresses:
        try:
            socket.create_connection((address, port), CONNECT_SECONDS).close()
            return AddressFacts(host, port, addresses)
        except TimeoutError:
            trouble = f"no answer within {CONNECT_SECONDS:g} s"
        except OSError as error:
            trouble = (error.strerror or str(error)).lower()
    return AddressFacts(host, port, addresses, unreached=trouble)


def query_kind(admin: Admin) -> tuple[bool | None, int | None]:
    """Return whether it is an Ottla broker, and its metadata.version; None for each that it does not show."""
    from ottla.client.admin import ConfigResource

    version = admin.describe_features().finalized_features.get("metadata.version")
    node = admin.describe_cluster().nodes[0].node_id
    resource = ConfigResource("broker", str(node))
    try:
        is_ottla = OURS in admin.describe_configs([resource])[resource]
    except OttlaError:
        is_ottla = None
    return is_ottla, None if version is None else version.max_version_level


def measure_clock_offset(admin: Admin) -> tuple[float, float] | None:
    """Return the lead of the leading controller's clock and its uncertainty, both in seconds; None if unknown.

    In DescribeQuorum the leader reports its own last-caught-up time as the current time.
    """
    started = time.time()
    quorum = admin.describe_metadata_quorum()
    ended = time.time()
    reported = [each.last_caught_up_timestamp for each in quorum.voters if each.replica_id == quorum.leader_id]
    if not reported or reported[0] is None or reported[0] <= 0:
        return None
    return reported[0] / 1000 - (started + ended) / 2, (ended - started) / 2


def query_topics(admin: Admin) -> list[TopicFacts]:
    """Return all topics, internal ones too, with their relevant configs."""
    from ottla.client.admin import ConfigResource

    topics = admin.describe_topics()
    configs = admin.describe_configs(ConfigResource("topic", name) for name in topics)
    return [
        TopicFacts(
            topic.name,
            topic.internal,
            topic.partitions,
            {
                name: entry.value
                for name in CONFIGS
                if (entry := configs[ConfigResource("topic", topic.name)].get(name)) is not None
                and entry.value is not None
            },
        )
        for topic in topics.values()
    ]


def query_groups(admin: Admin, partitions: Iterable[PartitionInfo]) -> tuple[list[GroupFacts], int]:
    """Return groups with their lag, and the number of groups that were not checked.

    Rebalancing ones are observed longer.
    """
    known = [each.group_id for each in admin.list_consumer_groups()]
    names = known[:MOST_GROUPS]
    if not names:
        return [], 0
    states = states_of(admin, names)
    stuck = still_rebalancing(admin, [name for name in names if states[name] in REBALANCING])
    committed = {name: offsets_of(admin, name) for name in names}
    led = {TopicPartition(each.topic, each.partition) for each in partitions if each.leader >= 0}
    asked = {tp for offsets in committed.values() for tp in offsets if tp in led}
    first, end = (
        {tp: at.offset for tp, at in admin.list_offsets(dict.fromkeys(asked, when)).items()}
        for when in (EARLIEST, LATEST)
    )
    return [
        GroupFacts(
            name,
            states.get(name, "Dead"),
            name in stuck,
            lag=sum(max(0, end[tp] - offset) for tp, offset in offsets.items() if tp in end),
            lost=sum(max(0, first[tp] - offset) for tp, offset in offsets.items() if tp in first),
        )
        for name, offsets in committed.items()
    ], len(known) - len(names)


def states_of(admin: Admin, names: Iterable[str]) -> dict[str, str]:
    return {name: group.state for name, group in admin.describe_consumer_groups(names).items()}


def offsets_of(admin: Admin, name: str) -> Mapping[TopicPartition, int]:
    return {tp: at.offset for tp, at in admin.list_consumer_group_offsets(name).items()}


def still_rebalancing(admin: Admin, names: list[str]) -> set[str]:
    """Return the groups that are rebalancing at every observation."""
    deadline = time.monotonic() + STUCK_SECONDS
    while names and time.monotonic() < deadline:
        time.sleep(UPDATE_SECONDS)
        states = states_of(admin, names)
        names = [name for name in names if states[name] in REBALANCING]
    return set(names)


def query_transactions(admin: Admin, now_ms: int) -> Iterator[TransactionFacts]:
    """Yield transactions that are neither completed nor empty; their age counts from their start."""
    # Older brokers reject filters with states that they do not know, so all transactions are listed.
    ids = [each.transactional_id for each in admin.list_transactions() if each.state in UNDER_WAY]
    for each in admin.describe_transactions(ids).values() if ids else ():
        if each.transaction_start_time_ms is not None:
            lasts = max(0, now_ms - each.transaction_start_time_ms)
            yield TransactionFacts(each.transactional_id, lasts, each.transaction_timeout_ms)


def find_hanging_partitions(admin: Admin, partitions: Iterable[PartitionInfo], now_ms: int) -> list[str]:
    """Return the partitions with transactions that no coordinator knows."""
    led = [TopicPartition(each.topic, each.partition) for each in partitions if each.leader >= 0]
    return [str(tp) for tp, _ in hanging_in(admin, led, now_ms - LONGEST_MINUTES * 60_000)] if led else []
