"""A broker's membership in a cluster: its registration, its copy of the metadata, and its channels to the controller.

    metadata log ──► copy, replayed up to the high watermark ──► apply_metadata: topics, replicas, quotas …
                                                  └──► offset ──► BrokerLifecycle ──► heartbeats
    BrokerLifecycle: registered, caught up ──► start_replicas: logs recovered ──► unfenced ──► accept_clients
                     shutdown requested ──► no partition led here any more, or a fatal error ──► stop

Each heartbeat states the last replayed offset. A broker is unfenced only after it has replayed its own registration. On a
node with the controller role the copy is that role's image.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from ottla.broker.event_loop.timers import Timers
from ottla.broker.metadata.observed_metadata import ObservedMetadata, Prepared
from ottla.broker.metadata.placement import list_cordoned
from ottla.broker.registration.controller_channel import ControllerChannel
from ottla.broker.registration.internal_requests import InternalRequests
from ottla.broker.registration.lifecycle_driver import ANSWER_SECONDS, LifecycleDriver
from ottla.broker.registration.local_metadata import LocalMetadata
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.endpoints import PROTOCOLS
from ottla.broker.settings.roles import list_controllers
from ottla.clock import Clock
from ottla.coordination.cluster.registration import BrokerListener
from ottla.coordination.lifecycle.broker_lifecycle import BrokerLifecycle, Incarnation, LifecycleTimeouts
from ottla.coordination.lifecycle.controlled_shutdown import should_report_at_once
from ottla.coordination.lifecycle.events import (
    ControllerElected,
    DirectoriesCordoned,
    DirectoryFailed,
    MetadataApplied,
    Recovered,
    ShutdownRequested,
)
from ottla.coordination.quorum.observer import Address, Outcome, ReplicaEnd
from ottla.errors import OttlaError
from ottla.kafka_id import id_of
from ottla.network.selector import Selector
from ottla.protocol.schema import Message
from ottla.storage.directory.data_directories import DataDirectories
from ottla.storage.directory.data_directory import DataDirectory

if TYPE_CHECKING:
    from ottla.broker.metadata.metadata_fetcher import MetadataFetcher, Submit
    from ottla.broker.peers.peers import Peers

LEAVING_SECONDS = 30.0
"""The maximum time for which a controlled shutdown waits until other brokers lead this one's partitions."""


class MemberBroker(Protocol):
    """The broker whose membership this is."""

    def apply_metadata(self, records: list[Message] | None) -> None:
        """Handle records that were replayed; None if a snapshot has replaced the image."""

    def start_replicas(self) -> None:
        """Start with the replicas: the image includes the broker's registration, and it is about to ask to be unfenced."""

    def accept_clients(self) -> None:
        """Serve clients: the broker is unfenced for the first time, according to the metadata that it has applied."""

    def stop(self, error: OttlaError | None) -> None:
        """Stop, after a controlled shutdown or because of an error."""


class Membership:
    """A broker's registration, metadata, and channels to the active controller. Belongs to the event loop."""

    def __init__(
        self,
        config: BrokerConfig,
        directory: DataDirectory | DataDirectories,
        metadata: ObservedMetadata,
        listeners: Sequence[BrokerListener],
        selector: Selector,
        timers: Timers,
        clock: Clock,
        call_soon: Callable[[Callable[[], None]], None],
        submit: Submit,
        local: LocalMetadata | None,
        member: MemberBroker,
    ) -> None:
        """`submit` runs work on a disk thread; `local` is the metadata of the controller role in this process, if it has one."""
        self._member = member
        self._timers = timers
        self._on_ready: Callable[[], None] = do_nothing
        self._has_started = self._is_admitted = self._is_leaving = False
        self.is_serving = False
        """True once clients are served."""
        self._metadata = metadata
        self._directory = directory
        self._call_soon = call_soon
        self._closed = False
        online = tuple(each.directory_id for each in directory.online())
        who = Incarnation(
            config.node_id,
            directory.cluster_id,
            uuid.uuid4(),
            tuple(listeners),
            online,
            tuple(sorted(list_cordoned(config, directory))),
            config.broker_rack,
            directory.previous_epoch,
        )
        self._config = config
        self._clock = clock
        source: LocalMetadata | MetadataFetcher
        if local is None:
            source = self._make_fetcher(config, submit, selector, timers, clock)
        else:
            source = local
            local.connect(self._report, self._report_leader)
        self._source = source
        role = None if local is None else local.controller
        in_loop = selector, timers

        def channel(client_id: str) -> ControllerChannel:
            connect = lambda: self.peers.connect_to_controller(client_id, *in_loop)  # noqa: E731
            return ControllerChannel(lambda: source.leader, connect, role, timers, clock)

        self.channel = channel("ottla-forwarder")
        self.partition_channel = channel("ottla-partitions")
        """For requests about replicas: they do not wait behind those of clients."""
        self.errands = InternalRequests(self.channel, config.node_id, lambda: self.epoch)
        self._lifecycle = LifecycleDriver(
            BrokerLifecycle(who, read_timeouts(config), clock.monotonic()),
            lambda: source.leader,
            lambda: self.peers.connect_to_controller("ottla-lifecycle", *in_loop, ANSWER_SECONDS),
            role,
            self,
            timers,
            clock,
            lambda: dict(metadata.machine.registrations),
        )

    @cached_property
    def peers(self) -> Peers:
        """The connections to other nodes. The only node never creates them."""
        from ottla.broker.peers.peers import Peers

        return Peers(self._config, self._clock)

    def _make_fetcher(
        self, config: BrokerConfig, submit: Submit, selector: Selector, timers: Timers, clock: Clock
    ) -> MetadataFetcher:
        from ottla.broker.metadata.metadata_fetcher import ANSWER_SECONDS as FETCH_SECONDS
        from ottla.broker.metadata.metadata_fetcher import MetadataFetcher
        from ottla.coordination.quorum.observer import Observer

        directory = self._directory
        known = [Address(*each) for each in list_controllers(config)]
        observer = Observer(known, config.node_id, directory.cluster_id, id_of(directory.meta.directory_id))
        return MetadataFetcher(
            observer,
            self,
            self.peers.connect_to_controller("ottla-metadata", selector, timers, FETCH_SECONDS),
            submit,
            timers,
            clock,
            self.end,
            self._report_leader,
        )

    def _report_leader(self) -> None:
        """Report to a controller that was elected."""
        self._call_soon(lambda: self._lifecycle.handle_event(ControllerElected()))

    @property
    def has_started(self) -> bool:
        """True after `start`, also after `close`."""
        return self._has_started

    def when_ready(self, act: Callable[[], None]) -> None:
        """Have `act` called when clients are served: at once if they are already."""
        if self.is_serving:
            act()
        else:
            self._on_ready = act

    def start(self) -> None:
        """Register with the active controller, and follow the metadata."""
        self._has_started = True
        self._source.start()
        self._lifecycle.start()

    def leave(self) -> bool:
        """Start a controlled shutdown, in any thread or in a signal handler; the member is stopped at its end.

        False if no other broker can lead the partitions, or it has started already; the caller then stops the broker.
        """
        if self._is_leaving or not self._has_started or self._config.is_alone:
            return False
        self._is_leaving = True
        self._call_soon(self._leave)
        return True

    def _leave(self) -> None:
        self._timers.schedule(self._clock.monotonic() + LEAVING_SECONDS, lambda: self._member.stop(None))
        self._lifecycle.handle_event(ShutdownRequested())

    def report_failed_directory(self, directory: uuid.UUID) -> None:
        """Report a failed directory to the controllers until they acknowledge it."""
        self._lifecycle.handle_event(DirectoryFailed(directory))

    def report_cordoned_directories(self, directories: Iterable[uuid.UUID]) -> None:
        """Report the cordoned directories to the controllers, unless they are the same as before."""
        self._lifecycle.handle_event(DirectoriesCordoned(tuple(sorted(directories))))

    def close(self) -> None:
        """Close the channels, and save the broker epoch for the file that marks a clean shutdown."""
        self._closed = True
        for each in (self._lifecycle, self._source, self.channel, self.partition_channel):
            each.close()
        self._directory.broker_epoch = self._lifecycle.lifecycle.epoch

    @property
    def epoch(self) -> int:
        """The broker epoch, which the controller assigns at the registration; -1 before."""
        return self._lifecycle.lifecycle.epoch

    def recover(self) -> None:
        self._call_soon(self._recover)

    def _recover(self) -> None:
        self._member.start_replicas()
        self._lifecycle.handle_event(Recovered())

    def serve(self) -> None:
        self._call_soon(self._admit)

    def _admit(self) -> None:
        self._is_admitted = True
        self._serve_if_unfenced()

    def _serve_if_unfenced(self) -> None:
        """Serve clients once the applied metadata says that this broker is unfenced."""
        if not self._is_admitted or self.is_serving:
            return
        known = self._metadata.machine.registrations.get(self._config.node_id)
        if known is not None and not known.fenced:
            self.is_serving = True
            self._member.accept_clients()
            self._on_ready()

    def end(self, error: OttlaError | None) -> None:
        self._call_soon(lambda: self._member.stop(error))

    def fetched_end(self) -> ReplicaEnd:
        return self._metadata.end

    def prepare(self, outcome: Outcome) -> Prepared:
        return self._metadata.prepare(outcome)

    def keep(self, outcome: Prepared) -> None:
        self._report_changes(self._metadata.applied, self._metadata.keep(outcome))

    def _apply_more(self) -> None:
        """Continue to replay committed records, in the loop."""
        if not self._closed:
            self._report_changes(self._metadata.applied, self._metadata.apply_more())

    def _report_changes(self, before: int, records: list[Message] | None) -> None:
        if self._metadata.applied > before:
            self._report(records)
        if self._metadata.unfinished:
            self._call_soon(self._apply_more)

    def _report(self, records: list[Message] | None) -> None:
        """Apply replayed records to the parts of the broker, and report the offset to the broker's lifecycle."""
        self._member.apply_metadata(records)
        self._serve_if_unfenced()
        awaited = should_report_at_once(self._metadata.machine.registrations.values(), records)
        self._lifecycle.handle_event(MetadataApplied(self._metadata.applied - 1, awaited))


def do_nothing() -> None:
    """Do nothing: the default of `when_ready`, for a broker that no caller waits for."""


def read_timeouts(config: BrokerConfig) -> LifecycleTimeouts:
    return LifecycleTimeouts(
        config.broker_heartbeat_interval_ms / 1000,
        config.initial_broker_registration_timeout_ms / 1000,
        config.log_dir_failure_timeout_ms / 1000,
    )


def build_listeners(config: BrokerConfig, bound: Mapping[str, tuple[str, int]]) -> list[BrokerListener]:
    """Return the listeners to register: the advertised addresses, else those of the bound ports."""
    advertised = config.advertised_endpoints()
    found = []
    for name, protocol in config.protocols().items():
        host, port = advertised[name][1:] if name in advertised else bound[name]
        found.append(BrokerListener(name, host, port, PROTOCOLS.index(protocol)))
    return found
