"""Queue requests of the consumer per broker and send them from `poll`.

Wraps a `NetworkClient` for one thread. I/O happens only in `poll`. The futures of requests are completed after the I/O,
so their callbacks may send further requests. Only `wakeup` may be called from another thread. Corresponds to Java's
ConsumerNetworkClient.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from ottla.client.network.client_request import ClientRequest, ClientResponse
from ottla.client.network.network_client import NetworkClient
from ottla.client.runtime.future import Future
from ottla.client.runtime.steps import Steps
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError, WakeupError
from ottla.model import FOREVER, Node

T = TypeVar("T")
RequestFuture = Future[ClientResponse]
"""Completed with the response; with KafkaError NETWORK_EXCEPTION if the connection was lost; or with the error for
which the request was not sent.
"""


class ConsumerNetworkClient:
    """Queues requests until their broker is ready, and completes their futures."""

    def __init__(self, client: NetworkClient, *, request_timeout_ms: int) -> None:
        self.client = client
        self.metadata = client.metadata
        self.unsent: dict[int, deque[tuple[Node, ClientRequest, RequestFuture]]] = {}
        """Requests for brokers that are not ready yet, by node id."""
        self.pending_completion: deque[Callable[[], None]] = deque()
        """Results that have arrived, with futures that are not completed yet."""
        self.on_close: Callable[[], None] | None = None
        """Called before the connections are closed. An event loop that waits for the client's file descriptor sets it.
        """
        self._clock = client.clock
        self._request_timeout_ms = request_timeout_ms
        self._woken = False
        self._open: set[RequestFuture] = set()
        """The futures of all requests without a result."""
        self.is_broken = False
        """True if an exception in the event loop has interrupted network work, so that an operation may be incomplete.
        """

    def send(
        self, node: Node, message: Any, *, timeout_ms: int | None = None, max_version: int | None = None
    ) -> RequestFuture:
        """Queue a request. It is sent by the next `poll` or `transmit_sends`."""
        future: RequestFuture = Future()
        request = ClientRequest(
            node.node_id,
            message,
            self._clock.monotonic(),
            self._request_timeout_ms if timeout_ms is None else timeout_ms,
            lambda response: self.pending_completion.append(partial(self._complete, future, response)),
            max_version=max_version,
        )
        self._open.add(future)
        self.unsent.setdefault(node.node_id, deque()).append((node, request, future))
        return future

    def poll(self, timeout: float, *, wakeable: bool = True) -> bool:
        """Send, receive and complete, waiting up to `timeout` seconds. Return True if a future was completed."""
        happened = self.fire_pending_completions()
        patience = min(timeout, self.transmit_sends())
        if self.pending_completion:
            patience = 0.0
        happened |= bool(self.client.poll(max(0.0, patience)))
        self._fail_unsent()
        self.transmit_sends()
        happened |= self.fire_pending_completions()
        self.metadata.raise_fatal()
        if wakeable:
            self.maybe_trigger_wakeup()
        return happened

    def wait_span(self) -> float:
        """Return the seconds until `poll` has work to do even if no connection becomes readable or writable; infinity for never."""
        return 0.0 if self.pending_completion else max(0.0, min(self.transmit_sends(), self.client.wait_span()))

    def run(self, steps: Steps[T], *, wakeable: bool = True) -> T:
        """Run the steps and poll while they wait. Exceptions of `poll` are thrown into the steps."""
        try:
            span = next(steps)
            while True:
                try:
                    self.poll(span, wakeable=wakeable)
                except BaseException as error:
                    span = steps.throw(error)
                else:
                    span = next(steps)
        except StopIteration as done:
            outcome: T = done.value
            return outcome

    def wait_until(self, done: Callable[[], bool], deadline: float) -> Steps[bool]:
        """Wait until `done`. Return False if `deadline` passes first."""
        while not done():
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            yield left
        return True

    def wait_for_time(self, until: float) -> Steps[None]:
        """Wait until a time."""
        while (left := until - self._clock.monotonic()) > 0:
            yield left

    def any_ready_node(self, deadline: float) -> Steps[Node | None]:
        """Wait for a broker that is ready, and return it; None if `deadline` passes first. Slow brokers are skipped."""
        while True:
            now = self._clock.monotonic()
            node = self.client.least_loaded_node(now)
            if node is not None and self.client.ready(node, now):
                return node
            if now >= deadline:
                return None
            nodes = self.metadata.cluster.nodes.values() if node is None else (node,)
            spans = [
                min(self.client.time_to_slow(each, now), self.client.connection_delay(each.node_id, now))
                for each in nodes
            ]
            yield min(deadline - now, max(0.01, min(spans, default=FOREVER)))

    def fresh_metadata(self, deadline: float) -> Steps[bool]:
        """Wait for the next metadata. Return False if `deadline` passes first."""
        version = self.metadata.request_update()
        return (yield from self.wait_until(lambda: self.metadata.version != version, deadline))

    def poll_until(self, future: Future[Any], deadline: float) -> bool:
        """Poll until `future` is complete. Return False if `deadline` passes first."""
        return self.run(self.wait_until(future.done, deadline))

    def await_metadata(self, deadline: float) -> bool:
        """Poll until the next metadata arrives. Return False if `deadline` passes first."""
        return self.run(self.fresh_metadata(deadline))

    def transmit_sends(self) -> float:
        """Pass every request with a ready broker to the network client. Return the seconds until the next call."""
        now = self._clock.monotonic()
        patience = FOREVER
        for node_id in list(self.unsent):
            queue = self.unsent[node_id]
            while queue and self.client.ready(queue[0][0], now):
                self.client.send(queue.popleft()[1], now)
            if queue:
                patience = min(patience, self.client.connection_delay(node_id, now) or FOREVER)
            else:
                del self.unsent[node_id]
        return patience

    def fire_pending_completions(self) -> bool:
        """Complete the futures with results; their callbacks run now. Return False if there were none."""
        if not self.pending_completion:
            return False
        while self.pending_completion:
            self.pending_completion.popleft()()
        return True

    def wakeup(self) -> None:
        """Make the running or the next `poll` raise WakeupError. May be called from any thread."""
        self._woken = True
        self.client.wakeup()

    def maybe_trigger_wakeup(self) -> None:
        """Raise WakeupError once if `wakeup` was called."""
        if self._woken:
            self._woken = False
            raise WakeupError("wakeup() was called")

    def send_last(self, node_id: int, message: Any) -> None:
        """Send a request before `close` if the connection is ready; the response is ignored."""
        now = self._clock.monotonic()
        if not self.client.closed and self.client.is_ready(node_id, now):
            request = ClientRequest(node_id, message, now, self._request_timeout_ms, lambda response: None)
            self.client.send(request, now)

    def disconnect(self, node_id: int, reason: str) -> None:
        """Close the connection to a broker. Requests in flight or queued for it fail."""
        for _, _, future in self.unsent.pop(node_id, ()):
            self.pending_completion.append(partial(self._fail, future, KafkaError(ErrorCode.NETWORK_EXCEPTION, reason)))
        self.client.disconnect(node_id, reason)

    def reset(self, reason: str) -> None:
        """Close all connections and fail all requests, after an exception that interrupted a call.

        Callbacks of the requests run here. May be interrupted and called again.
        """
        self.client.reset(reason)
        self.unsent.clear()
        self.pending_completion.clear()
        for future in list(self._open):
            self._fail(future, KafkaError(ErrorCode.NETWORK_EXCEPTION, reason))
        self.is_broken = False

    def _complete(self, future: RequestFuture, response: ClientResponse) -> None:
        complete(future, response)
        self._open.discard(future)

    def _fail(self, future: RequestFuture, error: Exception) -> None:
        future.set_exception(error)
        self._open.discard(future)

    def close(self) -> None:
        if self.on_close is not None:
            self.on_close()
        self.client.close()

    def _fail_unsent(self) -> None:
        """Fail requests for brokers that are unreachable, and requests that have timed out."""
        now = self._clock.monotonic()
        for node_id in list(self.unsent):
            failed = self.client.has_failed_login(node_id)
            queue = self.unsent[node_id]
            for _ in range(len(queue)):
                entry = queue.popleft()
                error = self._failure(entry[0], entry[1], now, failed)
                if error is None:
                    queue.append(entry)
                else:
                    self.pending_completion.append(partial(self._fail, entry[2], error))
            if not queue:
                del self.unsent[node_id]

    def _failure(self, node: Node, request: ClientRequest, now: float, failed: bool) -> Exception | None:
        if failed:
            return KafkaError(ErrorCode.NETWORK_EXCEPTION, self.client.describe_trouble())
        if now >= request.created + request.timeout_ms / 1000:
            return KafkaTimeoutError(f"{node} did not become ready within request.timeout.ms = {request.timeout_ms}")
        return None


def complete(future: RequestFuture, response: ClientResponse) -> None:
    """Complete a future with the result of its request."""
    if response.error is not None:
        future.set_exception(response.error)
    elif response.disconnected:
        future.set_exception(KafkaError(ErrorCode.NETWORK_EXCEPTION, response.reason))
    else:
        future.set_result(response)
