"""Requests and responses over connections to brokers, after Kafka's `NetworkClient`.

The shell around `ConnectionStates`, `InFlightRequests`, `ApiVersions` and `Metadata`: it holds the selector and the
clock. One thread drives it; only `wakeup` may be called from another. Only `poll` blocks.
"""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Callable, Hashable, Iterable
from random import Random
from typing import TYPE_CHECKING, Any, NoReturn, cast

from ottla._version import __version__
from ottla.client.config.common_config import CommonConfig
from ottla.client.metadata.coordinators import FIRST_OF_COORDINATORS
from ottla.client.metadata.metadata import Metadata
from ottla.client.metrics.network_sensors import NetworkSensors
from ottla.client.network.api_versions import (
    NEWEST,
    ApiVersions,
    NodeApiVersions,
    choose_next_version,
    features_of,
    ranges_of,
)
from ottla.client.network.client_request import ClientRequest, ClientResponse, Completion
from ottla.client.network.connection_failures import (
    PLAINTEXT_THERE,
    FailureLog,
    Suspicions,
    explain_failure,
    explain_required_login,
    is_foreign,
)
from ottla.client.network.connection_states import ConnectionState, ConnectionStates
from ottla.client.network.in_flight_requests import InFlightRequest, InFlightRequests
from ottla.client.network.least_loaded import choose_least_loaded
from ottla.client.network.metadata_updater import MetadataUpdater
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.telemetry.telemetry_sender import TelemetrySender
from ottla.clock import Clock, SystemClock
from ottla.errors import (
    ErrorCode,
    IllegalStateError,
    NoBrokersAvailableError,
    OttlaError,
    SaslAuthenticationError,
    SslAuthenticationError,
    UnsupportedVersionError,
    name_of,
)
from ottla.model import FOREVER, Node, size_of
from ottla.network.channel import REFUSED, Channel
from ottla.network.refusal import PeerRefusal
from ottla.network.resolver import UNRESOLVED
from ottla.network.selector import Selector
from ottla.protocol.apis import api_of
from ottla.protocol.conversation import encode_request
from ottla.protocol.messages.api_versions import ApiVersionsRequest
from ottla.protocol.messages.sasl_handshake import SaslHandshakeRequest
from ottla.security.channels import channel_maker
from ottla.security.login_refusal import LoginRefusal
from ottla.security.security import WITH_LOGIN

if TYPE_CHECKING:
    from ottla.client.authentication.authenticator import Authenticator

LOG = logging.getLogger(__name__)
MAX_FRAME_BYTES = 104_857_600
"""The longest accepted response: Kafka's own limit for a frame."""
REUSED_FRAME_BYTES = 16 * 1024 * 1024
"""A fetch response has up to `max.partition.fetch.bytes` for each of its partitions."""
LOGIN_APIS = ("SaslHandshake", "SaslAuthenticate")


class NetworkClient:
    """Sends requests to brokers and completes them."""

    def __init__(
        self,
        config: CommonConfig,
        metadata: Metadata,
        *,
        client_id: str,
        max_in_flight: int = 5,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        clock: Clock | None = None,
        random: Random | None = None,
        selector: Selector | None = None,
        failure_log: FailureLog | None = None,
    ) -> None:
        random = random or Random()
        self.metadata = metadata
        self.api_versions = ApiVersions()
        self.in_flight_requests = InFlightRequests(max_in_flight)
        self.clock = clock or SystemClock()
        self._config = config
        self._client_id = client_id
        self._failure_log = failure_log or FailureLog(client_id)
        self._random = random
        self._authenticator = self._make_authenticator(config)
        self._selector = selector or Selector(
            max_frame_bytes=max_frame_bytes,
            clock=self.clock,
            reused_frame_bytes=REUSED_FRAME_BYTES,
            socket_buffers=(config.send_buffer_bytes, config.receive_buffer_bytes),
            make_channel=channel_maker(config),
        )
        self._states = ConnectionStates(
            ExponentialBackoff(config.reconnect_backoff_ms, config.reconnect_backoff_max_ms, random),
            ExponentialBackoff(
                config.socket_connection_setup_timeout_ms, config.socket_connection_setup_timeout_max_ms, random
            ),
        )
        self._polled_until = self.clock.monotonic()
        self.sensors = NetworkSensors(config, self._states, self._polled_until)
        self._nodes: dict[int, Node] = {}
        self._suspicions = Suspicions()
        self._aborted: list[ClientResponse] = []
        self._correlation_id = 0
        self._metadata_updater = MetadataUpdater(config, metadata, self._states, client_id, self._failure_log)
        self.telemetry = TelemetrySender(random)
        self._refused_since: float | None = None
        """The time from which on every address of `bootstrap.servers` has refused connections, before any response."""
        self._unresolved_since: float | None = None
        """The time from which on no host name of `bootstrap.servers` could be resolved, before any response."""
        self._closed = False
        self._disowned = False
        self.on_disowned: Callable[[], None] | None = None
        OPEN_CLIENTS.add(self)

    def ready(self, node: Node, now: float) -> bool:
        """Return True if a request may be sent to `node` now; starts to connect if there is no connection."""
        if self.is_ready(node.node_id, now):
            return True
        if self._states.can_connect(node.node_id, now):
            self._connect(node, now)
        elif self._authenticator is not None:
            self._maybe_repeat_login(self._authenticator, node.node_id, now)
        return False

    def is_ready(self, node_id: int, now: float) -> bool:
        """Return True if a request may be sent now."""
        return self._states.is_ready(node_id, now) and self.in_flight_requests.can_send_more(node_id)

    def connection_delay(self, node_id: int, now: float) -> float:
        """Return the seconds until the node should be checked again; infinity if an event will end the wait."""
        return self._states.connection_delay(node_id, now)

    def has_failed_login(self, node_id: int) -> bool:
        """Return True if the last connection to the node failed and no new one is in progress."""
        node = self._states.for_node(node_id)
        return node.state is ConnectionState.DISCONNECTED and node.failures > 0

    def is_every_broker_down(self) -> bool:
        """Return True if the last connection to every known broker failed; one that is still opening is not counted as failed."""
        return all(self.has_failed_login(node_id) for node_id in self.metadata.cluster.nodes)

    def send(self, request: ClientRequest, now: float) -> None:
        """Send to a node that is ready; a version conflict is reported as an error at the next poll."""
        versions = self.api_versions.get(request.node_id)
        assert versions is not None, f"node {request.node_id} is not ready"
        try:
            version = versions.usable_version(api_of(request.message), request.max_version)
        except UnsupportedVersionError as error:
            self._aborted.append(ClientResponse(request.node_id, request, now, error=error))
        else:
            self._do_send(request, version, now)

    def poll(self, timeout: float) -> list[ClientResponse]:
        """Do the possible I/O, waiting up to `timeout` seconds; complete the finished requests and return their responses."""
        now = self.clock.monotonic()
        if self._authenticator is not None:
            self._authenticator.poll(now)
        self.sensors.registry.tick(now)
        self.in_flight_requests.extend_deadlines(now - self._polled_until)
        wait = min(timeout, self._send_own_requests(now), self.in_flight_requests.next_deadline() - now)
        self._selector.poll(0.0 if self._aborted else max(0.0, wait) if wait < FOREVER else None)
        now = self.clock.monotonic()
        done, self._aborted = self._aborted, []
        self._handle_completed_sends(done, now)
        self._handle_completed_receives(done, now)
        self._handle_disconnections(done, now)
        self._handle_connections(now)
        self._handle_timed_out_requests(done, now)
        self._close_idle(now)
        for response in done:
            response.complete()
        self._polled_until = now
        return done

    def wait_span(self) -> float:
        """Return the seconds after which `poll` must be called although `fileno` is not readable; infinity: never."""
        if self._aborted:
            return 0.0
        now = self.clock.monotonic()
        early = self._selector.wait_span()
        span = min(self._send_own_requests(now), self.in_flight_requests.next_deadline() - now)
        return max(0.0, span if early is None else min(span, early))

    def fileno(self) -> int:
        """Return a descriptor for an event loop: it is readable when `poll` has something to do."""
        return self._selector.fileno()

    def least_loaded_node(self, now: float) -> Node | None:
        """Return a broker for a request that any broker can answer; a doubted one only if there is no other."""
        return self.least_loaded_among(self.metadata.cluster.nodes.values(), now)

    def least_loaded_among(self, brokers: Iterable[Node], now: float) -> Node | None:
        """Return the best of these brokers. If an address is slow, each node id with that address counts as slow."""
        nodes = list(brokers)
        self._random.shuffle(nodes)
        silent = {(self._nodes[each].host, self._nodes[each].port) for each in self._states.slow_nodes(now)}
        slow = [node for node in nodes if (node.host, node.port) in silent] if silent else ()
        return choose_least_loaded(nodes, self._states, self.in_flight_requests, now, slow)

    def time_to_slow(self, node: Node, now: float) -> float:
        """Return the seconds until another broker is tried in addition to one that is connecting."""
        return self._states.time_to_slow(node.node_id, now)

    def doubt_broker(self, node_id: int) -> None:
        """Doubt a broker that missed a deadline: another may be the leader now, and the other brokers know it."""
        self._states.mark_doubted(node_id)
        self.metadata.request_update()

    def disconnect(self, node_id: int, reason: str) -> None:
        """Close the connection to a broker; its unanswered requests fail at the next poll.

        No backoff follows: a new connection may be opened at once.
        """
        LOG.debug("[%s] closing the connection to node %d: %s", self._client_id, node_id, reason)
        now = self.clock.monotonic()
        self._selector.close(node_id)
        self._forget_connection(node_id)
        self._states.record_close(node_id)
        self._aborted += fail_requests(node_id, self.in_flight_requests.clear(node_id), reason, now)

    @property
    def is_waiting(self) -> bool:
        """True while `poll` waits, and after an exception has ended the wait: then no operation was interrupted midway."""
        return self._selector.is_waiting

    def reset(self, reason: str) -> None:
        """Close all connections after an exception in the middle of a call; unanswered requests fail at the next poll.

        The state of a connection is not trusted. May be interrupted and called again.
        """
        if self._closed:
            return
        LOG.debug("[%s] closing all connections: %s", self._client_id, reason)
        now = self.clock.monotonic()
        self._selector.reset()
        for node_id in list(self._nodes):
            self._forget_connection(node_id)
            self._states.record_close(node_id)
            self._aborted += fail_requests(node_id, self.in_flight_requests.clear(node_id), reason, now)
        self._metadata_updater.reset()
        self.telemetry.reset(now)

    def wakeup(self) -> None:
        """Make the running or the next `poll` return; from any thread."""
        if not self._disowned:
            self._selector.wakeup()

    @property
    def closed(self) -> bool:
        """True if the client can no longer be used, also in a forked child."""
        return self._closed

    def close(self) -> None:
        """Close every connection; unanswered requests are never completed."""
        if not self._closed:
            self._selector.close_all()
            OPEN_CLIENTS.discard(self)
            self._closed = True  # last, so that a call after an exception continues

    def finish(self, *, hurried: bool = False) -> None:
        """Close, after a last push of metrics if a broker subscribed to them: that may take a tenth of a second."""
        try:
            for span in () if hurried else self.telemetry.terminate(self):
                self.poll(span)
        finally:
            self.close()

    def disown(self) -> None:
        """Release the connections in a forked child: they remain the parent's. Any later use is an error."""
        self._closed = self._disowned = True
        self._selector.disown()
        self._selector = cast(Selector, DisownedSelector())
        if self.on_disowned is not None:
            self.on_disowned()

    def describe_trouble(self) -> str:
        """Describe in one phrase which brokers cannot be reached, and why."""
        reasons = self._states.failure_reasons()
        known = [
            f"{self._describe_node(self._nodes[each])}: {why}" for each, why in reasons.items() if each in self._nodes
        ]
        waiting = ", ".join(self._describe_node(node) for node in self.metadata.cluster.nodes.values())
        strange = "; is it a Kafka broker?" if self.metadata.version == 0 else ""
        return "; ".join(known) or f"no answer from {waiting}{strange}"

    def unavailable_error(self, span_ms: float, setting: str) -> NoBrokersAvailableError:
        """Return the error of a call that waited for a broker until its timeout."""
        return NoBrokersAvailableError(
            f"no Kafka broker answered within {span_ms:.0f} ms ({setting}): {self.describe_trouble()}"
        )

    def _make_authenticator(self, config: CommonConfig) -> Authenticator | None:
        """Return the logins of this client's connections, or None. They refer to the client weakly."""
        if config.security_protocol not in WITH_LOGIN:
            return None
        # Imported here for start-up time: clients without a login do not need it.
        from ottla.client.authentication.authenticator import Authenticator

        return Authenticator(config, weakref.proxy(self), self.clock, self._random, weak_wakeup(self))

    def _send_own_requests(self, now: float) -> float:
        """Send the client's own requests that are due; return the seconds until the next check."""
        return min(self._metadata_updater.maybe_update(self, now), self.telemetry.maybe_push(self, now))

    def _describe_node(self, node: Node) -> str:
        return f"{node} (from bootstrap.servers)" if node.node_id < 0 else f"{node} (node {node.node_id})"

    def _connect(self, node: Node, now: float) -> None:
        self._nodes[node.node_id] = node
        timeout = self._states.start_connecting(node.node_id, now)
        # Checks whether the port is a plaintext one. Only ApiVersions is sent, and the connection is closed afterwards.
        how = Channel if self._suspicions.is_plaintext_suspected(node.node_id) else None
        self._selector.connect(node.node_id, node.host, node.port, timeout=timeout, how=how)

    def _do_send(self, request: ClientRequest, version: int, now: float) -> None:
        request.correlation_id = self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        parts = encode_request(request.message, version, self._correlation_id, self._client_id)
        deadline = now + request.timeout_ms / 1000
        entry = InFlightRequest(request, api_of(request.message), version, self._correlation_id, deadline, now)
        self._states.for_node(request.node_id).last_used = now
        self.in_flight_requests.add(entry)
        self.sensors.for_node(request.node_id).requests.record(size_of(parts))
        self._selector.send(request.node_id, parts)

    def send_internal(self, node_id: int, message: Any, version: int, completion: Completion, now: float) -> None:
        """Send a request of the client itself to a node that is connected."""
        request = ClientRequest(node_id, message, now, self._config.request_timeout_ms, completion)
        self._do_send(request, version, now)

    def _handle_completed_sends(self, done: list[ClientResponse], now: float) -> None:
        for channel in self._selector.completed_sends:
            entry = self.in_flight_requests.complete_sent(node_of(channel))
            if entry is not None:
                done.append(ClientResponse(node_of(channel), entry.request, now, version=entry.version))

    def _handle_completed_receives(self, done: list[ClientResponse], now: float) -> None:
        for channel, frame in self._selector.completed_receives:
            node_id = node_of(channel)
            entry = self.in_flight_requests.complete_next(node_id)
            if entry is None:
                continue  # the connection was closed between two frames of the same poll
            self.sensors.for_node(node_id).record_response(len(frame), now - entry.asked)
            try:
                message = entry.read(frame)
            except OttlaError as error:
                self._end_connection(node_id, f"{entry.api.name}: {error}", done, now, also=[entry])
                continue
            self._throttle(node_id, message, now)
            response = ClientResponse(node_id, entry.request, now, message=message, version=entry.version)
            if self._authenticator is not None and entry.api.name in LOGIN_APIS:
                response.complete()  # before the end of the connection, which often follows a refused login
            else:
                done.append(response)

    def _throttle(self, node_id: int, message: Any, now: float) -> None:
        if (span_ms := getattr(message, "throttle_time_ms", 0)) > 0:
            self._states.throttle(node_id, now + span_ms / 1000)

    def _handle_disconnections(self, done: list[ClientResponse], now: float) -> None:
        for channel, reason in self._selector.disconnected.items():
            node_id = node_of(channel)
            if self._states.state(node_id) is ConnectionState.DISCONNECTED:
                continue  # closed by this client in this poll
            self._handle_lost_connection(node_id, explain_failure(reason, self._states.state(node_id)), done, now)

    def _handle_connections(self, now: float) -> None:
        for channel in self._selector.connected:
            if channel not in self._selector.disconnected:  # both may happen within one poll
                self._request_api_versions(node_of(channel), NEWEST, now)

    def _handle_timed_out_requests(self, done: list[ClientResponse], now: float) -> None:
        reason = f"no answer within request.timeout.ms = {self._config.request_timeout_ms}"
        for node_id in self.in_flight_requests.find_expired(now):
            self.doubt_broker(node_id)
            self._end_connection(node_id, reason, done, now)

    def _close_idle(self, now: float) -> None:
        span = self._config.connections_max_idle_ms / 1000
        for node_id in self._states.find_idle(now, span) if span >= 0 else ():
            if not self.in_flight_requests.count(node_id):
                self._selector.close(node_id)
                self._states.record_close(node_id)

    def _forget_connection(self, node_id: int) -> None:
        """Forget what was negotiated on a connection that has ended or is about to."""
        self.api_versions.remove(node_id)
        if self._authenticator is not None:
            self._authenticator.remove(node_id)

    def _end_connection(
        self, node_id: int, reason: str, done: list[ClientResponse], now: float, also: Iterable[InFlightRequest] = ()
    ) -> None:
        """Close a connection that cannot be used any more."""
        self._selector.close(node_id)
        self._handle_lost_connection(node_id, reason, done, now, also)

    def _handle_lost_connection(
        self, node_id: int, reason: str, done: list[ClientResponse], now: float, also: Iterable[InFlightRequest] = ()
    ) -> None:
        """Handle the end of a connection: fail its requests, and refresh the metadata."""
        self._failure_log.log_failure(
            self._describe_node(self._nodes[node_id]), self._states.for_node(node_id), reason, now
        )
        unexplained = self._states.state(node_id) is ConnectionState.READY and self.metadata.version == 0
        self._suspicions.record_end(node_id, reason, at_first_request=unexplained and self._authenticator is None)
        self._forget_connection(node_id)
        before = self._states.for_node(node_id).reason
        refused, hopeless = isinstance(reason, PeerRefusal), is_foreign(reason, before)
        self._states.record_disconnect(node_id, reason, now, hopeless=hopeless, refused=refused)
        done += fail_requests(node_id, [*also, *self.in_flight_requests.clear(node_id)], reason, now)
        self.metadata.request_update()
        if refused:
            kind = SaslAuthenticationError if isinstance(reason, LoginRefusal) else SslAuthenticationError
            self.metadata.set_fatal_error(kind(f"{self._describe_node(self._nodes[node_id])}: {reason}"))
        self._fail_if_no_broker()
        self._fail_if_refused(now)
        self._fail_if_unresolved(now)

    def _fail_if_unresolved(self, now: float) -> None:
        """Fail waiting calls if no host name of `bootstrap.servers` was resolved for `bootstrap.resolve.timeout.ms` (KIP-909)."""
        timeout_ms, nodes = self._config.bootstrap_resolve_timeout_ms, self.metadata.bootstrap
        if not timeout_ms or self.metadata.version:
            return
        if not all(self._states.for_node(node.node_id).reason.startswith(UNRESOLVED) for node in nodes):
            self._unresolved_since = None
            return
        self._unresolved_since = now if self._unresolved_since is None else self._unresolved_since
        if now - self._unresolved_since >= timeout_ms / 1000:
            names = ", ".join(dict.fromkeys(node.host for node in nodes))
            self.metadata.set_fatal_error(
                NoBrokersAvailableError(
                    f"cannot resolve {names} within bootstrap.resolve.timeout.ms = {timeout_ms}: check bootstrap.servers and "
                    f"the name service"
                )
            )

    def _fail_if_refused(self, now: float) -> None:
        """Fail waiting calls if every address has refused connections for `bootstrap.fail_login.timeout.ms`."""
        timeout_ms, nodes = self._config.bootstrap_refused_timeout_ms, self.metadata.bootstrap
        if timeout_ms < 0 or self.metadata.version:
            return
        if not all(self._states.for_node(node.node_id).reason == REFUSED for node in nodes):
            self._refused_since = None
            return
        self._refused_since = now if self._refused_since is None else self._refused_since
        if now - self._refused_since >= timeout_ms / 1000:
            addresses = ", ".join(map(str, nodes))
            self.metadata.set_fatal_error(
                NoBrokersAvailableError(
                    f"no Kafka broker at {addresses}: connection refused; start one there (ottla broker), or name another "
                    f"address in bootstrap.servers (--bootstrap-server of commands)"
                )
            )

    def _fail_if_no_broker(self) -> None:
        """Fail waiting calls if, before the first metadata, no address of `bootstrap.servers` is a Kafka broker."""
        nodes = self.metadata.bootstrap
        if self.metadata.version == 0 and all(self._states.for_node(node.node_id).is_incompatible for node in nodes):
            trouble = self.describe_trouble()
            kind = "not a plaintext port" if "answers with TLS" in trouble else "not a Kafka broker"
            self.metadata.set_fatal_error(NoBrokersAvailableError(f"{kind}: {trouble}"))

    def _request_api_versions(self, node_id: int, version: int, now: float) -> None:
        self._states.start_api_versions_check(node_id)
        cluster_id, expected_id = self._expected_node(node_id)
        request = ApiVersionsRequest("ottla", __version__, cluster_id, expected_id)
        self.send_internal(node_id, request, version, self._handle_api_versions, now)

    def _expected_node(self, node_id: int) -> tuple[str | None, int]:
        """Return the cluster and the node to expect at this connection; (None, -1) if unknown or not to be checked (KIP-1242)."""
        cluster, config = self.metadata.cluster, self._config
        if not config.metadata_cluster_check_enable or config.metadata_recovery_strategy == "none":
            return None, -1
        # The coordinator of a group has a node id of its own, which no broker knows.
        ids = (each for each in (node_id, FIRST_OF_COORDINATORS - node_id) if each >= 0 and each in cluster.nodes)
        expected_id = next(ids, -1)
        return (cluster.cluster_id, expected_id) if cluster.cluster_id and expected_id >= 0 else (None, -1)

    def _handle_api_versions(self, response: ClientResponse) -> None:
        node_id, answer = response.node_id, response.message
        if answer is None:
            return
        if self._suspicions.is_plaintext_suspected(node_id):
            self._end_connection(node_id, PeerRefusal(PLAINTEXT_THERE), self._aborted, response.received)
            self._selector.wakeup()
            return
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            version = choose_next_version(answer, response.version)
            if version is not None:
                self._request_api_versions(node_id, version, response.received)
                return
        if answer.error_code != ErrorCode.NONE:
            reason = f"it rejected ApiVersions: {name_of(answer.error_code)}"
            self._end_connection(node_id, reason, self._aborted, response.received)
            self._metadata_updater.maybe_rebootstrap(answer.error_code, node_id, response.received)
            return
        versions = NodeApiVersions(str(self._nodes[node_id]), ranges_of(answer), features_of(answer))
        self.api_versions.update(node_id, versions)
        if self._suspicions.take_login_suspicion(node_id):
            self.send_login_request(node_id, SaslHandshakeRequest(), self._handle_login_probe, response.received)
        elif self._authenticator is None:
            self._complete_connection(node_id)
        else:
            self._states.start_login(node_id, response.received)
            self._authenticator.start_login(node_id, self._nodes[node_id].host, response.received)

    def _complete_connection(self, node_id: int) -> None:
        self._states.mark_ready(node_id)
        LOG.debug("[%s] connected to %s", self._client_id, self._describe_node(self._nodes[node_id]))

    def _handle_login_probe(self, response: ClientResponse) -> None:
        """Handle the probe of a port: one that requires a login lists its mechanisms, another closes the connection."""
        node_id, answer = response.node_id, response.message
        if answer is None:
            return
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            reason = explain_required_login(self._config.security_protocol, answer.mechanisms)
            self.fail_login(node_id, LoginRefusal(reason), response.received)
        else:
            self._complete_connection(node_id)

    def send_login_request(self, node_id: int, message: Any, completion: Completion, now: float) -> None:
        """Send a request of a login, to a broker that accepts no other request yet."""
        try:
            version = cast(NodeApiVersions, self.api_versions.get(node_id)).usable_version(api_of(message))
        except UnsupportedVersionError as error:
            self.fail_login(node_id, LoginRefusal(str(error)), now)
        else:
            self.send_internal(node_id, message, version, completion, now)

    def complete_login(self, node_id: int, renew_at: float) -> None:
        """Mark the connection as usable until `renew_at`."""
        self._states.complete_login(node_id, renew_at, self.clock.monotonic())
        LOG.debug("[%s] logged in to %s", self._client_id, self._describe_node(self._nodes[node_id]))

    def fail_login(self, node_id: int, reason: LoginRefusal, now: float) -> None:
        """Close a connection after a failed login, and wake a waiting poll so that the error is raised."""
        self._end_connection(node_id, reason, self._aborted, now)
        self._selector.wakeup()

    def _maybe_repeat_login(self, authenticator: Authenticator, node_id: int, now: float) -> None:
        """Log in again on an idle connection before its session expires (KIP-368)."""
        if self._states.should_renew_login(node_id, now) and not self.in_flight_requests.count(node_id):
            LOG.debug("[%s] logging in again to %s", self._client_id, self._describe_node(self._nodes[node_id]))
            self._states.start_login(node_id, now)
            authenticator.start_login(node_id, self._nodes[node_id].host, now)


def node_of(channel: Hashable) -> int:
    """Return the node of a channel: channels are named by node id."""
    return cast(int, channel)


def fail_requests(node_id: int, entries: Iterable[InFlightRequest], reason: str, now: float) -> list[ClientResponse]:
    """Return failed responses for the requests of a connection that has ended."""
    return [ClientResponse(node_id, entry.request, now, version=entry.version, reason=reason) for entry in entries]


def weak_wakeup(client: NetworkClient) -> Callable[[], None]:
    """Return a function that wakes the client if it still exists, without keeping it alive."""
    reference = weakref.ref(client)

    def wake() -> None:
        found = reference()
        if found is not None and not found.closed:
            found.wakeup()

    return wake


class DisownedSelector:
    """Replaces the selector of a parent's client in a forked child."""

    def __getattr__(self, name: str) -> NoReturn:
        raise IllegalStateError("this client belongs to the process that forked this one; make a new one here")


OPEN_CLIENTS: weakref.WeakSet[NetworkClient] = weakref.WeakSet()


def disown_open_clients() -> None:
    """Disown the parent's clients in a forked child, which would otherwise close connections that the parent polls."""
    for client in list(OPEN_CLIENTS):
        client.disown()
    OPEN_CLIENTS.clear()


os.register_at_fork(after_in_child=disown_open_clients)
