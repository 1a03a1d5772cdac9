"""Access to a cluster through the public clients, so that it works with any Kafka.

It is used by several threads: they share an Admin and a Producer; each search has its own Consumer.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ottla.client.admin import Admin, ConfigResource, NewTopic
from ottla.client.admin.health import health_of
from ottla.console import views
from ottla.console.broker_view import brokers_view
from ottla.console.metrics_pages import pages_of, subscriptions_of
from ottla.console.pushed_view import client_view, clients_for_list, clients_view, find_client
from ottla.console.record_search import find_newest, find_oldest
from ottla.console.record_view import RecordCondition, record_view
from ottla.console.transaction_view import UNDER_WAY, chosen_transactions, transaction_row, transaction_view
from ottla.errors import ErrorCode, KafkaError, OttlaError, UnsupportedVersionError
from ottla.model import EARLIEST, LATEST, TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin import ProducerState, TransactionDescription
    from ottla.client.producer import Producer
    from ottla.console.registered_values import RegisteredValues
    from ottla.console.views import View

PAGE = 100
"""The number of topics on a page."""
PATIENCE_MS = 5_000

Start = tuple[str, int]
"""The mode earliest, latest, offset or time, and the number for the last two."""
STARTS = ("earliest", "latest", "offset", "time")


class ConsoleCluster:
    """Queries about one cluster that return views. `settings` are settings that all clients have."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = {name: value for name, value in settings.items() if name != "default.api.timeout.ms"}
        self.admin, self.second_admin = (
            Admin({**self.settings, "default.api.timeout.ms": PATIENCE_MS}) for _ in range(2)
        )
        """The second one is for requests that run in parallel; an Admin handles one at a time."""
        self._producer: Producer | None = None

    def close(self) -> None:
        """Close all connections."""
        self.admin.close()
        self.second_admin.close()
        if self._producer is not None:
            self._producer.close()

    def message_for(self, error: OttlaError) -> str:
        """Return the message of an error; if no broker is available, name the cluster."""
        if isinstance(error, KafkaError) and error.code == ErrorCode.BROKER_NOT_AVAILABLE:
            return f"no broker of the cluster at {self.settings['bootstrap.servers']} answers; is it running?"
        return str(error)

    def overview(self) -> View:
        """Return brokers, topics, groups, the nodes that are away, and the partitions that lack copies."""
        topics = self.admin.describe_topics().values()
        groups = self.admin.list_consumer_groups()
        cluster, quorum = self.admin.describe_cluster(), None
        with suppress(KafkaError, UnsupportedVersionError):
            cluster = self.admin.describe_cluster(include_fenced_brokers=True)
        with suppress(KafkaError, UnsupportedVersionError):
            quorum = self.admin.describe_metadata_quorum()
        health = health_of(cluster, quorum, [each for topic in topics for each in topic.partitions], {})
        return views.overview(cluster.nodes, topics, groups, health)

    def topics(self, text: str, start: int) -> View:
        """Return a page of the topics that contain `text` in their names."""
        count, names = views.chosen_names(self.admin.list_topics(internal=True), text, start, PAGE)
        found = self.admin.describe_topics(names) if names else {}
        return {"count": count, "from": start, "topics": [views.topic_row(found[name]) for name in names]}

    def topic(self, name: str) -> View:
        """Return one topic with offsets and configs."""
        topic = self.admin.describe_topics([name])[name]
        led = [TopicPartition(name, p.partition) for p in topic.partitions if p.leader >= 0]
        return views.topic_view(topic, self.offsets(led, EARLIEST), self.offsets(led, LATEST), self.configs(name))

    def configs(self, topic: str) -> Mapping[str, Any]:
        """Return the configs of a topic; none if access is denied."""
        resource = ConfigResource("topic", topic)
        try:
            return self.admin.describe_configs([resource])[resource]
        except (KafkaError, UnsupportedVersionError):
            return {}

    def offsets(self, partitions: Iterable[TopicPartition], when: int) -> dict[TopicPartition, int]:
        """Return the offsets of partitions at a time."""
        wanted = dict.fromkeys(partitions, when)
        found = self.admin.list_offsets(wanted) if wanted else {}
        return {tp: at.offset for tp, at in found.items()}

    def create_topic(self, name: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
        """Create a topic; -1 leaves a number to the broker."""
        self.admin.create_topics([NewTopic(name, partitions, replicas, configs)])

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all its records."""
        self.admin.delete_topics([name])

    def set_config(self, topic: str, name: str, value: str | None) -> None:
        """Set one config of a topic; None resets it to its default."""
        self.admin.alter_configs({ConfigResource("topic", topic): {name: value}})

    def brokers(self) -> View:
        """Return the brokers with leaders, lagging replicas and disks; without the disks if one broker does not answer."""
        unseen, directories, quorum = None, {}, None
        with ThreadPoolExecutor(1, "ottla-console") as pool:
            asked = pool.submit(self.second_admin.describe_log_dirs)
            topics = self.admin.describe_topics().values()
        try:
            directories = asked.result()
        except (KafkaError, UnsupportedVersionError) as error:
            unseen = f"the directories are not available: {error}"
        with suppress(KafkaError, UnsupportedVersionError):
            quorum = self.admin.describe_metadata_quorum()
        return {**brokers_view(self.admin.describe_cluster(), topics, directories, quorum), "unseen": unseen}

    def clients(self, text: str) -> View:
        """Return clients that push metrics and contain `text` in their names, and the metrics subscriptions."""
        pages, wrong = pages_of(self.admin)
        subscriptions: Mapping[str, Mapping[str, str | None]] = {}
        with suppress(KafkaError, UnsupportedVersionError):
            subscriptions = subscriptions_of(self.admin)
        seen = clients_view(clients_for_list(pages).values(), text, PAGE)
        return {**seen, "subscriptions": subscriptions, "brokers": sorted(pages), "wrong": wrong}

    def client(self, instance_id: str) -> View | None:
        """Return one client with all its metrics, or None if it is unknown."""
        found = find_client(pages_of(self.admin)[0], instance_id)
        return None if found is None else client_view(found)

    def transactions(self, text: str) -> View:
        """Return transactional ids that contain `text`, and the start times of open transactions."""
        count, found = chosen_transactions(self.admin.list_transactions(), text, PAGE)
        open_ones = [each.transactional_id for each in found if each.state in UNDER_WAY]
        described: Mapping[str, TransactionDescription] = {}
        with suppress(KafkaError):  # one may have ended meanwhile
            described = self.admin.describe_transactions(open_ones) if open_ones else {}
        now_ms = int(time.time() * 1000)
        rows = [transaction_row(each, now_ms, described.get(each.transactional_id)) for each in found]
        return {"count": count, "transactions": rows}

    def transaction(self, name: str) -> View:
        """Return one transactional id, and the first offset of its open transaction by partition."""
        described = self.admin.describe_transactions([name])[name]
        producers: Mapping[TopicPartition, tuple[ProducerState, ...]] = {}
        with suppress(KafkaError):  # a partition may be deleted, or access denied
            producers = self.admin.describe_producers(described.topic_partitions) if described.topic_partitions else {}
        return transaction_view(described, producers)

    def fence(self, name: str) -> None:
        """Fence the producers of a transactional id, and abort its open transaction."""
        self.admin.describe_transactions([name])  # fencing would create an unknown id
        self.admin.fence_producers([name])

    def groups(self) -> View:
        """Return consumer groups, share groups and streams groups, and the number of groups of other types."""
        return views.groups_view(self.admin.list_groups())

    def group(self, name: str) -> View:
        """Return one group: its members, their partitions, and the lag."""
        try:
            described = self.admin.describe_consumer_groups([name])[name]
        except KafkaError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                raise
            view = self._group_of_another_type(name)
            if view is None:
                raise
            return view
        committed = self.admin.list_consumer_group_offsets(name)
        return views.group_view(described, committed, self.offsets(self.existing(committed), LATEST))

    def _group_of_another_type(self, name: str) -> View | None:
        """Return a share group or a streams group; None if there is none."""
        kind = next((each.protocol_type for each in self.admin.list_groups() if each.group_id == name), None)
        if kind == views.SHARE:
            found = self.admin.describe_share_groups([name])[name]
            return views.share_group_view(found, self.admin.list_share_group_offsets(name))
        if kind == views.STREAMS:
            described = self.admin.describe_streams_groups([name])[name]
            committed = self.admin.list_streams_group_offsets(name)
            return views.streams_group_view(described, committed, self.offsets(self.existing(committed), LATEST))
        return None

    def existing(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions with a topic that still exists."""
        partitions = list(partitions)
        known = self.admin.list_topics(internal=True) if partitions else {}
        return [tp for tp in partitions if tp.topic in known]

    def preview_reset(self, group: str, topic: str, when: int) -> View:
        """Return the offsets that a group would have if it was reset to a time in ms, EARLIEST or LATEST. Nothing is changed."""
        partitions = [TopicPartition(topic, p.partition) for p in self.admin.describe_topics([topic])[topic].partitions]
        found, end = self.offsets(partitions, when), self.offsets(partitions, LATEST)
        wanted = {tp: offset if offset >= 0 else end[tp] for tp, offset in found.items()}
        return views.reset_view(self.admin.list_consumer_group_offsets(group), wanted, end)

    def reset_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the offsets of a group without members, as they were previewed."""
        self.admin.alter_consumer_group_offsets(group, offsets)

    def produce(self, topic: str, key: str | None, value: str | None, partition: int | None) -> View:
        """Send one record, and return its partition and offset."""
        if self._producer is None:
            from ottla.client.producer import Producer

            self._producer = Producer({**self.settings, "max.block.ms": PATIENCE_MS})
        self.admin.describe_topics([topic])  # sending would create an unknown topic
        value_bytes, key_bytes = (None if part is None else part.encode() for part in (value, key))
        at = self._producer.send(topic, value_bytes, key=key_bytes, partition=partition).result()
        return {"partition": at.partition, "offset": at.offset}

    def records(
        self,
        topic: str,
        partition: int | None,
        start: Start,
        wanted: RecordCondition,
        most: int,
        values: RegisteredValues | None = None,
    ) -> View:
        """Return up to `most` records that match: from `start` on the oldest first, or of `latest` the newest first.

        `values` decodes keys and values with a schema id.
        """
        from ottla.client.consumer import Consumer

        infos = self.admin.describe_topics([topic])[topic].partitions
        chosen = [TopicPartition(topic, p.partition) for p in infos if partition in (None, p.partition)]
        first, end = self.offsets(chosen, EARLIEST), self.offsets(chosen, LATEST)
        with Consumer(
            {**self.settings, "default.api.timeout.ms": PATIENCE_MS, "allow.auto.create.topics": False}
        ) as consumer:
            if start[0] == "latest":
                found = find_newest(consumer, first, end, wanted, most)
            else:
                found = find_oldest(consumer, self.start_offsets(start, first, end), end, wanted, most)
        return {
            "records": [record_view(each, None if values is None else values.show_field) for each in found.records],
            "looked_at": found.looked_at,
            "whole": found.is_whole,
        }

    def start_offsets(
        self, start: Start, first: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """Return the offset of each partition from which to read, within what there is."""
        how, number = start
        match how:
            case "offset":
                wanted = dict.fromkeys(first, number)
            case "time":
                found = self.offsets(first, number)
                wanted = {tp: offset if offset >= 0 else end[tp] for tp, offset in found.items()}
            case _:
                wanted = dict(first)
        return {tp: max(first[tp], min(wanted[tp], end[tp])) for tp in first}
