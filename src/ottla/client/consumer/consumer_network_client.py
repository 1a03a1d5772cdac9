"""Requests of the consumer, gathered per broker and sent from `poll`.

A shell over `NetworkClient` for one thread: nothing happens but in `poll`, and completions are fired there, after the
I/O, so that what they call may send again. `wakeup` alone may come from another thread.
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
"""Completed with the answer; with KafkaError NETWORK_EXCEPTION when it was lost, or what made it impossible."""


class ConsumerNetworkClient:
    """Queues requests until their broker is ready, and completes their futures."""

    def __init__(self, client: NetworkClient, *, request_timeout_ms: int) -> None:
        self.client = client
        self.metadata = client.metadata
        self.unsent: dict[int, deque[tuple[Node, ClientRequest, RequestFuture]]] = {}
        """Requests whose broker is not ready yet, by node id."""
        self.pending_completion: deque[Callable[[], None]] = deque()
        """Outcomes that arrived and whose futures are not completed yet."""
        self.on_close: Callable[[], None] | None = None
        """Called before the connections are closed, by whoever watches their descriptor."""
        self._clock = client.clock
        self._request_timeout_ms = request_timeout_ms
        self._woken = False
        self._open: set[RequestFuture] = set()
        """The futures of all requests without an outcome."""
        self.is_broken = False
        """True if an exception ended work on the network in the event loop at a place where something may be half done."""

    def send(
        self, node: Node, message: Any, *, timeout_ms: int | None = None, max_version: int | None = None
    ) -> RequestFuture:
        """Queue a request; it leaves with the next `poll` or `transmit_sends`."""
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
        """Send, receive and complete, waiting up to `timeout` seconds; tells whether anything was completed."""
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
        """Seconds after which `poll` has something to do that the descriptor does not tell of; infinity: never."""
        return 0.0 if self.pending_completion else max(0.0, min(self.transmit_sends(), self.client.wait_span()))

    def run(self, steps: Steps[T], *, wakeable: bool = True) -> T:
        """Do what waits for the network, polling meanwhile; what `poll` raises is raised where the steps wait."""
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

    def until(self, done: Callable[[], bool], deadline: float) -> Steps[bool]:
        """Wait until `done`; False when `deadline` comes first."""
        while not done():
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            yield left
        return True

    def pause(self, until: float) -> Steps[None]:
        """Wait until a moment."""
        while (left := until - self._clock.monotonic()) > 0:
            yield left

    def any_ready_node(self, deadline: float) -> Steps[Node | None]:
        """Wait until some broker can be sent to; None when `deadline` comes first. One that is slow to answer is left aside."""
        while True:
            now = self._clock.monotonic()
            node = self.client.least_loaded_node(now)
            if node is not None and self.client.ready(node, now):
                return node
            if now >= deadline:
                return None
            nodes = self.metadata.cluster.nodes.values() if node is None else (node,)
            spans = [min(self.client.time_to_slow(each, now), self.client.delay(each.node_id, now)) for each in nodes]
            yield min(deadline - now, max(0.01, min(spans, default=FOREVER)))

    def fresh_metadata(self, deadline: float) -> Steps[bool]:
        """Wait until the next metadata is here; False when `deadline` comes first."""
        version = self.metadata.request_update()
        return (yield from self.until(lambda: self.metadata.version != version, deadline))

    def poll_until(self, future: Future[Any], deadline: float) -> bool:
        """Poll until `future` is complete; False when `deadline` comes first."""
        return self.run(self.until(future.done, deadline))

    def await_metadata(self, deadline: float) -> bool:
        """Poll until the next metadata is here; False when `deadline` comes first."""
        return self.run(self.fresh_metadata(deadline))

    def transmit_sends(self) -> float:
        """Hand over every request whose broker is ready; returns the seconds after which to try again."""
        now = self._clock.monotonic()
        patience = FOREVER
        for node_id in list(self.unsent):
            queue = self.unsent[node_id]
            while queue and self.client.ready(queue[0][0], now):
                self.client.send(queue.popleft()[1], now)
            if queue:
                patience = min(patience, self.client.delay(node_id, now) or FOREVER)
            else:
                del self.unsent[node_id]
        return patience

    def fire_pending_completions(self) -> bool:
        """Complete the futures whose outcome is here; their callbacks run now. False when there was none."""
        if not self.pending_completion:
            return False
        while self.pending_completion:
            self.pending_completion.popleft()()
        return True

    def wakeup(self) -> None:
        """Have the running or the next `poll` raise WakeupError; from any thread."""
        self._woken = True
        self.client.wakeup()

    def maybe_trigger_wakeup(self) -> None:
        """Raise WakeupError once if `wakeup` was called."""
        if self._woken:
            self._woken = False
            raise WakeupError("wakeup() was called")

    def send_last(self, node_id: int, message: Any) -> None:
        """Send before `close` what nobody will wait for the answer of, where there is a connection."""
        now = self._clock.monotonic()
        if not self.client.closed and self.client.is_ready(node_id, now):
            request = ClientRequest(node_id, message, now, self._request_timeout_ms, lambda response: None)
            self.client.send(request, now)

    def disconnect(self, node_id: int, reason: str) -> None:
        """End the connection to a broker of our own accord; what was sent to it, or is about to be, fails."""
        for _, _, future in self.unsent.pop(node_id, ()):
            self.pending_completion.append(partial(self._fail, future, KafkaError(ErrorCode.NETWORK_EXCEPTION, reason)))
        self.client.disconnect(node_id, reason)

    def reset(self, reason: str) -> None:
        """Close all connections and fail all requests, after an exception in the middle of a call.

        Callbacks of the requests run here. Safe to be interrupted and to be called again.
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
        """Fail what waits for a broker that cannot be reached, or has waited too long."""
        now = self._clock.monotonic()
        for node_id in list(self.unsent):
            failed = self.client.failed(node_id)
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
            return KafkaError(ErrorCode.NETWORK_EXCEPTION, self.client.trouble())
        if now >= request.created + request.timeout_ms / 1000:
            return KafkaTimeoutError(f"{node} did not become ready within request.timeout.ms = {request.timeout_ms}")
        return None


def complete(future: RequestFuture, response: ClientResponse) -> None:
    """Settle a future by what became of its request."""
    if response.error is not None:
        future.set_exception(response.error)
    elif response.disconnected:
        future.set_exception(KafkaError(ErrorCode.NETWORK_EXCEPTION, response.reason))
    else:
        future.set_result(response)
