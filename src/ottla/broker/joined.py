"""What a broker is besides where it has joined a cluster: let in, sent away, and gone when it has handed over."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.broker.cluster.own_topics import TRANSACTION_STATE
from ottla.broker.cluster.topics import leader_of_key
from ottla.broker.disk import Disk
from ottla.broker.machines.runtime import Pending
from ottla.broker.node import BrokerNode
from ottla.broker.requests.call import Call, Outcome
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.errors import KafkaError, OttlaError
from ottla.kafka_id import id_of
from ottla.model import TopicPartition
from ottla.network.listener import Listener
from ottla.network.selector import Selector

if TYPE_CHECKING:
    from ottla.broker.controllers.local_metadata import LocalMetadata
    from ottla.broker.controllers.membership import Membership
    from ottla.broker.coordinators.elsewhere import CoordinatorsElsewhere, Inquiry, Verdicts
    from ottla.broker.coordinators.markers_elsewhere import MarkersElsewhere
    from ottla.broker.partitions.partition import Partition
    from ottla.broker.replication.hosting import Hosting
    from ottla.coordination.quorum.observer import Address
    from ottla.protocol.schema import Message

CallSoon = Callable[[Callable[[], None]], None]
LEAVING_SECONDS = 30.0
"""How long it waits at most until what it leads is led elsewhere."""


class Joined:
    """A broker's membership, and what the broker does about it."""

    def __init__(
        self,
        membership: Membership,
        hosting: Hosting,
        timers: Timers,
        clock: Clock,
        call_soon: CallSoon,
        end: Callable[[], None],
        fail: Callable[[OttlaError], None],
        is_in: Callable[[], bool],
        conversations: Sequence[CoordinatorsElsewhere | MarkersElsewhere] = (),
    ) -> None:
        """`end` ends the broker at once, `fail` too, and says why. `conversations` with other brokers end with it.

        `is_in` says whether this broker is let in by the metadata that it knows.
        """
        self.on_serving: Callable[[], None] = lambda: None
        """Called when the controllers have let the broker in for the first time, and it knows that from the metadata."""
        self.on_ready: Callable[[], None] = lambda: None
        """Called after that."""
        self._membership = membership
        self._hosting = hosting
        self._timers = timers
        self._clock = clock
        self._call_soon = call_soon
        self._end = end
        self._fail = fail
        self._is_in = is_in
        self._conversations = conversations
        self.serving = False
        """Whether clients are answered."""
        self._admitted = False
        self._leaving = False
        self._started = False
        membership.on_serving = self._let_in
        membership.on_end = self._sent_away

    def start(self) -> None:
        self._started = True
        self._membership.start()

    def leave(self) -> bool:
        """Begin to hand over, in any thread; False where the broker is to end without that."""
        if self._leaving or not self._started:
            return False
        self._leaving = True
        self._call_soon(self._end_in_time)
        self._membership.leave()
        return True

    def forward(self, call: Call, request: Message, frame: memoryview) -> Outcome:
        """Have the active controller decide a client's request."""
        return self._membership.channel.forward(call, request, frame)

    def close(self) -> None:
        if self._started:
            self._hosting.close()
            for each in self._conversations:
                each.close()
            self._membership.close()

    def _end_in_time(self) -> None:
        self._timers.at(self._clock.monotonic() + LEAVING_SECONDS, self._end)

    def look(self) -> None:
        """The metadata are others now."""
        if self._admitted and not self.serving and self._is_in():
            self.serving = True
            self.on_serving()
            self.on_ready()

    def _let_in(self) -> None:
        self._admitted = True
        self.look()

    def _sent_away(self, error: OttlaError | None) -> None:
        if error is None:
            self._end()
        else:
            self._fail(error)


def join(
    node: BrokerNode,
    listeners: Mapping[Listener, str],
    selector: Selector,
    call_soon: CallSoon,
    end: Callable[[], None],
    fail: Callable[[OttlaError], None],
    open_ports: Callable[[], None],
    disk: Disk,
    local: LocalMetadata | None,
) -> Joined:
    """Make a broker that has these listeners one of the cluster's; nothing is sent before `start`.

    `open_ports` is called when the broker has caught up with the metadata, before it asks to be unfenced. `local` is the
    metadata of the controller role in this process, if it has one.
    """
    from ottla.broker.controllers.membership import Membership, listeners_of  # only where there is a cluster

    told = listeners_of(node.config, {name: each.address for each, name in listeners.items()})
    membership = Membership(
        node.config,
        node.directory,
        node.observed,
        told,
        selector,
        node.timers,
        node.clock,
        call_soon,
        disk.submit,
        local,
    )
    from ottla.coordination.lifecycle.handing_over import is_news

    assert node.brokers is not None
    brokers = node.brokers
    node.split = membership.peers.split
    hosting = hosted(node, membership, selector)
    node.partitions.relieves = hosting.relieves
    hosting.on_led, hosting.on_lost, hosting.on_deleted = node.led, node.lost, node.topics_deleted

    def applied(records: list[Message] | None) -> None:
        node.topics.observed(records)
        if is_news(records):
            brokers.note_changes(node.clock.monotonic())
            hosting.look()
            for each in conversations:
                each.look()
            joined.look()

    def is_in() -> bool:
        known = node.observed.machine.registrations.get(node.config.node_id)
        return known is not None and not known.fenced

    def offline(directory: UUID, partitions: Sequence[Partition]) -> None:
        hosting.lose(partitions)
        membership.lose(directory)

    def caught_up() -> None:
        brokers.note_start(node.clock.monotonic())
        hosting.begin()
        node.relocations.begin()
        open_ports()

    def moved(partition: Partition) -> None:
        hosting.relocate(partition)
        node.relocated(partition)

    node.disk_watch.stops_with_the_only_one, node.disk_watch.on_offline = True, offline
    node.relocations.tell, node.relocations.moved = hosting.tell_place, moved
    membership.on_applied = applied
    membership.on_caught_up = caught_up
    node.make_topics = membership.errands.make_topics
    node.coordinators = coordinators(node, membership, selector, call_soon)
    markers = node.markers.elsewhere = markers_elsewhere(node, membership, selector)
    node.producer_ids.fetch = lambda: membership.errands.fetch_producer_ids(node.producer_ids)
    conversations = (node.coordinators, markers)
    joined = Joined(membership, hosting, node.timers, node.clock, call_soon, end, fail, is_in, conversations)
    return joined


def hosted(node: BrokerNode, membership: Membership, selector: Selector) -> Hosting:
    """What keeps the copies that the metadata give this broker."""
    from ottla.broker.replication.directories import Directories
    from ottla.broker.replication.hosting import Hosting
    from ottla.broker.replication.isr_changes import IsrChanges
    from ottla.broker.replication.leader_fetcher import LeaderFetcher, Replica
    from ottla.broker.replication.throttled_copies import FOLLOWER, ThrottledCopies

    config, timers, clock, peers = node.config, node.timers, node.clock, membership.peers
    directory_id = id_of(node.directory.meta.directory_id)
    me = Replica(config.node_id, lambda: membership.epoch, directory_id)
    asked = config.node_id, lambda: membership.epoch, membership.partition_channel, timers, clock
    node.partitions.elsewhere = lambda topic_id: name_of(node, topic_id)
    node.partitions.absent_code = node.topics.absent_code
    limit = lambda: node.config.follower_replication_throttled_rate  # noqa: E731
    fetched = ThrottledCopies(FOLLOWER, limit, node.topics.configs_of, config.node_id, clock)
    return Hosting(
        lambda: node.config,
        node.observed,
        node.partitions,
        node.lead,
        lambda leader: LeaderFetcher(
            leader,
            lambda id_: address_of(node, id_, peers.broker_listener),
            me,
            timers,
            clock,
            peers.broker(f"ottla-fetcher-{leader}", selector, timers),
            fetched,
        ),
        IsrChanges(*asked),
        Directories(lambda partition: place_of(node, partition), *asked, node.directory.begins_anew),
        node.waiting,
        node.flusher,
        timers,
        clock,
    )


def place_of(node: BrokerNode, partition: TopicPartition) -> UUID | None:
    """The directory in which a copy is, or will be; None where that one is not there."""
    try:
        return node.relocations.told_home(partition) or node.directory.place(partition).directory_id
    except KafkaError:
        return None  # Who uses the partition is told.


def coordinators(
    node: BrokerNode, membership: Membership, selector: Selector, call_soon: CallSoon
) -> CoordinatorsElsewhere:
    """The way to those who coordinate transactions."""
    from ottla.broker.coordinators.elsewhere import CoordinatorsElsewhere

    peers = membership.peers
    return CoordinatorsElsewhere(
        lambda transactional_id: leader_of_key(node.topics.named(TRANSACTION_STATE), transactional_id),
        lambda broker: address_of(node, broker, peers.broker_listener),
        lambda broker: peers.broker(f"ottla-transactions-{broker}", selector, node.timers),
        node.config.node_id,
        lambda inquiry, told: call_soon(lambda: ask_here(node, inquiry, told)),
    )


def ask_here(node: BrokerNode, inquiry: Inquiry, told: Callable[[Verdicts, int], None]) -> None:
    """Have the coordinator of this broker say whether a transaction has partitions that are led here, or take them in."""
    from ottla.broker.transaction_calls import tell

    about = (inquiry.transactional_id, inquiry.producer_id, inquiry.epoch, inquiry.partitions)
    word = tell(
        lambda later: node.transactions.take_part(*about, verify_only=inquiry.verify_only, later=later),
        lambda code: told({}, code_of(code)),
    )
    if not isinstance(word, Pending):
        told({}, code_of(word))


def code_of(word: int | KafkaError) -> int:
    return word.code if isinstance(word, KafkaError) else word


def markers_elsewhere(node: BrokerNode, membership: Membership, selector: Selector) -> MarkersElsewhere:
    """The way of markers to the leaders of their partitions."""
    from ottla.broker.coordinators.markers_elsewhere import MarkersElsewhere

    peers = membership.peers
    return MarkersElsewhere(
        node.topics.leader_of,
        lambda broker: address_of(node, broker, peers.broker_listener),
        lambda broker: peers.broker(f"ottla-markers-{broker}", selector, node.timers),
    )


def name_of(node: BrokerNode, topic_id: UUID) -> str | None:
    topic = node.topics.with_id(topic_id)
    return None if topic is None else topic.name


def address_of(node: BrokerNode, broker: int, listener: str) -> Address | None:
    """Where other brokers reach a broker, if it is known."""
    from ottla.coordination.quorum.observer import Address

    assert node.brokers is not None
    known = next((each for each in node.brokers.reached_by(listener) if each.node_id == broker), None)
    return None if known is None else Address(known.host, known.port)
