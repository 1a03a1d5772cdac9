"""A cluster as the console asks it: by the clients that everybody has, so any Kafka will do.

Called from several threads: an Admin and a Producer are everybody's, a Consumer is made for each search.
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
from ottla.console.pushed_view import client_view, clients_view, instance_in, listed_in
from ottla.console.record_search import find_newest, find_oldest
from ottla.console.record_view import Wanted, record_view
from ottla.console.transaction_view import UNDER_WAY, chosen_transactions, transaction_row, transaction_view
from ottla.errors import ErrorCode, KafkaError, OttlaError, UnsupportedVersionError
from ottla.model import EARLIEST, LATEST, TopicPartition

if TYPE_CHECKING:
    from ottla.client.admin import ProducerState, TransactionDescription
    from ottla.client.producer import Producer
    from ottla.console.views import View

PAGE = 100
"""Topics of a page."""
PATIENCE_MS = 5_000

Start = tuple[str, int]
"""earliest, latest, offset or time, and the number of the last two."""
STARTS = ("earliest", "latest", "offset", "time")


class Cluster:
    """Questions about one cluster, answered as views. `settings` are those that all clients have."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = {name: value for name, value in settings.items() if name != "default.api.timeout.ms"}
        self.admin, self.beside = (Admin({**self.settings, "default.api.timeout.ms": PATIENCE_MS}) for _ in range(2))
        """The second is for what is asked at the same time as something else: an Admin asks one thing after the other."""
        self._producer: Producer | None = None

    def close(self) -> None:
        """Let go of all connections."""
        self.admin.close()
        self.beside.close()
        if self._producer is not None:
            self._producer.close()

    def said(self, error: OttlaError) -> str:
        """What went wrong; where no broker is left, whom to look after."""
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
        """A page of the topics that have `text` in their names."""
        count, names = views.chosen_names(self.admin.list_topics(internal=True), text, start, PAGE)
        found = self.admin.describe_topics(names) if names else {}
        return {"count": count, "from": start, "topics": [views.topic_row(found[name]) for name in names]}

    def topic(self, name: str) -> View:
        """One topic with offsets and configs."""
        topic = self.admin.describe_topics([name])[name]
        led = [TopicPartition(name, p.partition) for p in topic.partitions if p.leader >= 0]
        return views.topic_view(topic, self.offsets(led, EARLIEST), self.offsets(led, LATEST), self.configs(name))

    def configs(self, topic: str) -> Mapping[str, Any]:
        """The configs of a topic; none where we may not see them."""
        resource = ConfigResource("topic", topic)
        try:
            return self.admin.describe_configs([resource])[resource]
        except (KafkaError, UnsupportedVersionError):
            return {}

    def offsets(self, partitions: Iterable[TopicPartition], when: int) -> dict[TopicPartition, int]:
        """Where partitions stand at a time."""
        wanted = dict.fromkeys(partitions, when)
        found = self.admin.list_offsets(wanted) if wanted else {}
        return {tp: at.offset for tp, at in found.items()}

    def create_topic(self, name: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
        """Make a topic; -1 leaves a number to the broker."""
        self.admin.create_topics([NewTopic(name, partitions, replicas, configs)])

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all its records."""
        self.admin.delete_topics([name])

    def set_config(self, topic: str, name: str, value: str | None) -> None:
        """Set one config of a topic and leave the others; None gives it back to its default."""
        self.admin.alter_configs({ConfigResource("topic", topic): {name: value}})

    def brokers(self) -> View:
        """Who leads what, who lags, and what is on the disks; where one broker is silent those stay unseen."""
        unseen, directories, quorum = None, {}, None
        with ThreadPoolExecutor(1, "ottla-console") as pool:
            asked = pool.submit(self.beside.describe_log_dirs)
            topics = self.admin.describe_topics().values()
        try:
            directories = asked.result()
        except (KafkaError, UnsupportedVersionError) as error:
            unseen = f"the directories cannot be seen: {error}"
        with suppress(KafkaError, UnsupportedVersionError):
            quorum = self.admin.describe_metadata_quorum()
        return {**brokers_view(self.admin.describe_cluster(), topics, directories, quorum), "unseen": unseen}

    def clients(self, text: str) -> View:
        """Clients that push metrics and have `text` in their names, and what they are asked for."""
        pages, wrong = pages_of(self.admin)
        subscriptions: Mapping[str, Mapping[str, str | None]] = {}
        with suppress(KafkaError, UnsupportedVersionError):
            subscriptions = subscriptions_of(self.admin)
        seen = clients_view(listed_in(pages).values(), text, PAGE)
        return {**seen, "subscriptions": subscriptions, "brokers": sorted(pages), "wrong": wrong}

    def client(self, instance_id: str) -> View | None:
        """One client with all that it pushes; None where it is not heard of."""
        found = instance_in(pages_of(self.admin)[0], instance_id)
        return None if found is None else client_view(found)

    def transactions(self, text: str) -> View:
        """Transactional ids that have `text` in them; of those under way, since when."""
        count, found = chosen_transactions(self.admin.list_transactions(), text, PAGE)
        open_ones = [each.transactional_id for each in found if each.state in UNDER_WAY]
        described: Mapping[str, TransactionDescription] = {}
        with suppress(KafkaError):  # one that has ended meanwhile
            described = self.admin.describe_transactions(open_ones) if open_ones else {}
        now_ms = int(time.time() * 1000)
        rows = [transaction_row(each, now_ms, described.get(each.transactional_id)) for each in found]
        return {"count": count, "transactions": rows}

    def transaction(self, name: str) -> View:
        """One transactional id, and since which offset its transaction is open."""
        described = self.admin.describe_transactions([name])[name]
        producers: Mapping[TopicPartition, tuple[ProducerState, ...]] = {}
        with suppress(KafkaError):  # a partition that has gone, or that we may not read
            producers = self.admin.describe_producers(described.topic_partitions) if described.topic_partitions else {}
        return transaction_view(described, producers)

    def fence(self, name: str) -> None:
        """Shut out who writes under a transactional id, and abort what is under way."""
        self.admin.describe_transactions([name])  # an id that is not there is not to be made by the way
        self.admin.fence_producers([name])

    def groups(self) -> View:
        """All groups of consumers, and how many there are of other kinds."""
        return views.groups_view(self.admin.list_groups())

    def group(self, name: str) -> View:
        """One group: who reads what, and how far behind."""
        described = self.admin.describe_consumer_groups([name])[name]
        committed = self.admin.list_consumer_group_offsets(name)
        return views.group_view(described, committed, self.offsets(self.there(committed), LATEST))

    def there(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those whose topic has not been deleted."""
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
        """Write one record, and say where it is."""
        if self._producer is None:
            from ottla.client.producer import Producer

            self._producer = Producer({**self.settings, "max.block.ms": PATIENCE_MS})
        self.admin.describe_topics([topic])  # a topic that is not there is not to be made by the way
        value_bytes, key_bytes = (None if part is None else part.encode() for part in (value, key))
        at = self._producer.send(topic, value_bytes, key=key_bytes, partition=partition).result()
        return {"partition": at.partition, "offset": at.offset}

    def records(self, topic: str, partition: int | None, start: Start, wanted: Wanted, most: int) -> View:
        """Return up to `most` records that match: from `start` on the oldest first, or of `latest` the newest first."""
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
                found = find_oldest(consumer, self.begin(start, first, end), end, wanted, most)
        return {
            "records": [record_view(each) for each in found.records],
            "looked_at": found.looked_at,
            "whole": found.is_whole,
        }

    def begin(
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
