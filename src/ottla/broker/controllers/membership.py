"""A broker as a member of a cluster: its life, the metadata that it observes, and what it hands on."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence

from ottla.broker.cluster.placement import cordoned
from ottla.broker.controllers.controller_channel import ControllerChannel
from ottla.broker.controllers.errands import Errands
from ottla.broker.controllers.lifecycle_driver import ANSWER_SECONDS, LifecycleDriver
from ottla.broker.controllers.local_metadata import LocalMetadata
from ottla.broker.controllers.metadata_fetcher import ANSWER_SECONDS as FETCH_SECONDS
from ottla.broker.controllers.metadata_fetcher import MetadataFetcher, Submit
from ottla.broker.machines.observed_metadata import ObservedMetadata, Prepared
from ottla.broker.peers.peers import Peers
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.endpoints import PROTOCOLS
from ottla.broker.settings.roles import controllers
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.coordination.cluster.registration import Listener
from ottla.coordination.lifecycle.broker_lifecycle import BrokerLifecycle, Incarnation, Spans
from ottla.coordination.lifecycle.events import (
    ControllerElected,
    DirectoryFailed,
    MetadataApplied,
    Recovered,
    StopWanted,
)
from ottla.coordination.lifecycle.handing_over import is_awaited
from ottla.coordination.quorum.observer import Address, LogEnd, Observer, Outcome
from ottla.errors import OttlaError
from ottla.kafka_id import id_of
from ottla.network.selector import Selector
from ottla.protocol.schema import Message
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory


class Membership:
    """A broker's registration, its metadata and its ways to the active controller. Belongs to the loop."""

    def __init__(
        self,
        config: BrokerConfig,
        directory: DataDirectory | DataDirectories,
        metadata: ObservedMetadata,
        listeners: Sequence[Listener],
        selector: Selector,
        timers: Timers,
        clock: Clock,
        call_soon: Callable[[Callable[[], None]], None],
        submit: Submit,
        local: LocalMetadata | None,
    ) -> None:
        """`submit` runs work on a disk thread; `local` is the metadata of the controller role in this process, if it has one."""
        self._metadata = metadata
        self._directory = directory
        self._call_soon = call_soon
        self._closed = False
        self.on_applied: Callable[[list[Message] | None], None] = lambda records: None
        """Told of the records that became state; None where a snapshot has come in the place of all."""
        self.on_caught_up: Callable[[], None] = lambda: None
        """Called when the metadata are known as they were at the registration, before the broker is let in."""
        self.on_serving: Callable[[], None] = lambda: None
        self.on_end: Callable[[OttlaError | None], None] = lambda error: None
        online = tuple(each.directory_id for each in directory.online())
        who = Incarnation(
            config.node_id,
            directory.cluster_id,
            uuid.uuid4(),
            tuple(listeners),
            online,
            tuple(cordoned(config, directory)),
            config.broker_rack,
            directory.previous_epoch,
        )
        self.peers = Peers(config, clock)
        source: LocalMetadata | MetadataFetcher
        if local is None:
            source = self._fetcher_of(config, submit, selector, timers, clock)
        else:
            source = local
            local.connect(self._report, self._tell_of_leader)
        self._source = source
        role = None if local is None else local.controller
        in_loop = selector, timers

        def channel(client_id: str) -> ControllerChannel:
            connection = self.peers.controller(client_id, *in_loop)
            return ControllerChannel(lambda: source.leader, connection, role, timers, clock)

        self.channel = channel("ottla-forwarder")
        self.partition_channel = channel("ottla-partitions")
        """For requests about replicas: they do not wait behind those of clients."""
        self.errands = Errands(self.channel, config.node_id, lambda: self.epoch)
        self._lifecycle = LifecycleDriver(
            BrokerLifecycle(who, spans_of(config), clock.monotonic()),
            lambda: source.leader,
            self.peers.controller("ottla-lifecycle", *in_loop, ANSWER_SECONDS),
            role,
            self,
            timers,
            clock,
            lambda: dict(metadata.machine.registrations),
        )

    def _fetcher_of(
        self, config: BrokerConfig, submit: Submit, selector: Selector, timers: Timers, clock: Clock
    ) -> MetadataFetcher:
        directory = self._directory
        known = [Address(*each) for each in controllers(config)]
        observer = Observer(known, config.node_id, directory.cluster_id, id_of(directory.meta.directory_id))
        return MetadataFetcher(
            observer,
            self,
            self.peers.controller("ottla-metadata", selector, timers, FETCH_SECONDS),
            submit,
            timers,
            clock,
            self.end,
            self._tell_of_leader,
        )

    def _tell_of_leader(self) -> None:
        """Report to a controller that was elected."""
        self._call_soon(lambda: self._lifecycle.tell(ControllerElected()))

    def start(self) -> None:
        self._source.start()
        self._lifecycle.start()

    def leave(self) -> None:
        """Begin a controlled shutdown; from any thread, or from a signal handler. `on_end` is called at its end."""
        self._call_soon(lambda: self._lifecycle.tell(StopWanted()))

    def lose(self, directory: uuid.UUID) -> None:
        """Tell the controllers that a directory has failed, until they have heard it."""
        self._lifecycle.tell(DirectoryFailed(directory))

    def close(self) -> None:
        """End the conversations; the epoch under which they were held goes into the mark of a clean shutdown."""
        self._closed = True
        for each in (self._lifecycle, self._source, self.channel, self.partition_channel):
            each.close()
        self._directory.broker_epoch = self._lifecycle.lifecycle.epoch

    @property
    def epoch(self) -> int:
        """Under which the controllers know this run; -1 before they do."""
        return self._lifecycle.lifecycle.epoch

    def recover(self) -> None:
        self._call_soon(self._recover)

    def _recover(self) -> None:
        self.on_caught_up()
        self._lifecycle.tell(Recovered())

    def serve(self) -> None:
        self._call_soon(lambda: self.on_serving())

    def end(self, error: OttlaError | None) -> None:
        self._call_soon(lambda: self.on_end(error))

    def fetched_end(self) -> LogEnd:
        return self._metadata.end

    def prepare(self, outcome: Outcome) -> Prepared:
        return self._metadata.prepare(outcome)

    def keep(self, outcome: Prepared) -> None:
        self._tell(self._metadata.applied, self._metadata.keep(outcome))

    def _go_on(self) -> None:
        """Take up what had to wait; runs in the loop."""
        if not self._closed:
            self._tell(self._metadata.applied, self._metadata.go_on())

    def _tell(self, before: int, records: list[Message] | None) -> None:
        if self._metadata.applied > before:
            self._report(records)
        if self._metadata.unfinished:
            self._call_soon(self._go_on)

    def _report(self, records: list[Message] | None) -> None:
        """Apply what has changed to the parts of the broker; tell the broker's lifecycle how far it is."""
        self.on_applied(records)
        awaited = is_awaited(self._metadata.machine.registrations.values(), records)
        self._lifecycle.tell(MetadataApplied(self._metadata.applied - 1, awaited))


def spans_of(config: BrokerConfig) -> Spans:
    return Spans(
        config.broker_heartbeat_interval_ms / 1000,
        config.initial_broker_registration_timeout_ms / 1000,
        config.log_dir_failure_timeout_ms / 1000,
    )


def listeners_of(config: BrokerConfig, bound: Mapping[str, tuple[str, int]]) -> list[Listener]:
    """Where the broker says that it is reached: as advertised, else where its ports are."""
    advertised = config.advertised_endpoints()
    found = []
    for name, protocol in config.protocols().items():
        host, port = advertised[name][1:] if name in advertised else bound[name]
        found.append(Listener(name, host, port, PROTOCOLS.index(protocol)))
    return found
