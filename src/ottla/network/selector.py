"""The selector: many connections in one thread, and the events since the last `poll`.

 It corresponds to Kafka's `Selector` (org.apache.kafka.common.network). A caller queues frames with `send` and calls
`poll` in a loop; `poll` waits once for all sockets and then fills the lists `connected`, `accepted`,
`completed_receives`, `completed_sends` and `disconnected`, which are valid until the next `poll`.

* `send` writes to the socket at once if nothing is queued, since most responses fit into the socket buffer. Its outcome is
  reported by the next `poll`.
* Each ready connection may move a limited number of bytes per iteration, so that a busy one does not starve the others.
* Of accepted connections that are in their handshake or login, one is served per iteration, because a step takes up to a
  millisecond of CPU time.
* If requests exceed the memory limit, connections in the middle of a large request stop reading (`MemoryBudget`).

The selector handles frames, not messages. No method raises because of a peer's behaviour: it becomes a reason in
`disconnected`.
"""

from __future__ import annotations

import itertools
import socket
from collections import deque
from collections.abc import Hashable, Sequence

from ottla.clock import Clock, SystemClock
from ottla.errors import ProtocolError
from ottla.model import Part
from ottla.network.channel import READ_BYTES_PER_TURN, Channel, MakeChannel, accepted_channel, reason_of
from ottla.network.frame_buffers import MOST_BYTES, FrameBuffers, allocate_untouched
from ottla.network.listener import ConnectionLimit, Listener
from ottla.network.memory_budget import CAREFUL_BYTES, SMALL_BYTES, UNLIMITED, MemoryBudget
from ottla.network.poller import BROKEN, ENDED, READ, WRITE, Poller, default_poller
from ottla.network.resolver import ResolvedAddress, parse_numeric, resolve
from ottla.network.send_queue import Frames

SCRATCH_BYTES = 256 * 1024
NO_MEMORY = "the process has no memory left"
NEWCOMERS_PER_TURN = 1
"""The number of handshake or login steps, up to a millisecond each, per iteration; the next poll reports the others
again.
"""


class Selector:
    """Connections by id, polled together.

     The addresses of a closed channel are available until the next `poll`; otherwise it behaves as an idle channel, and
    a frame sent to it is dropped.
    """

    def __init__(
        self,
        *,
        max_frame_bytes: int = 104_857_600,
        clock: Clock | None = None,
        poller: Poller | None = None,
        memory: MemoryBudget | None = None,
        max_accepted: int = UNLIMITED,
        reused_frame_bytes: int = MOST_BYTES,
        socket_buffers: tuple[int, int] = (-1, -1),
        make_channel: MakeChannel = Channel,
        reports_early: bool = True,
    ) -> None:
        """Create a selector without connections.

         `memory` limits the received data that is not processed yet; connections beyond `max_accepted` are not
        accepted. The memory of frames of up to `reused_frame_bytes` is reused. `socket_buffers` are the send and
        receive buffer sizes of connections that this side opens; negative: the operating system's default. These are
        created by `make_channel`. Without `reports_early`, frames that the socket accepts within `send` are not reported
        by the next `poll`.
        """
        self.connected: list[Hashable] = []
        self.accepted: list[int] = []
        self.completed_receives: list[tuple[Hashable, memoryview]] = []
        """Frames without their length prefix; the receiver owns the memory and may write to it."""
        self.completed_sends: list[Hashable] = []
        """One entry per completed frame."""
        self.disconnected: dict[Hashable, str] = {}
        """The reason; empty for an orderly close by the peer. Channels closed by this side are not listed."""
        self.is_waiting = False
        """True during the wait of `poll`, also after an exception has ended it there; no operation is half done then.
        """
        self._max_frame_bytes = max_frame_bytes
        self._reused_frame_bytes = reused_frame_bytes
        self._socket_buffers = socket_buffers
        self._make_channel = make_channel
        self._clock = clock or SystemClock()
        self._poller = poller or default_poller()
        self._scratch = memoryview(allocate_untouched(SCRATCH_BYTES))
        self._buffers = FrameBuffers(reused_frame_bytes)
        self._memory = memory or MemoryBudget()
        self._limit = ConnectionLimit(max_accepted)
        self._channels: dict[Hashable, Channel] = {}
        self._departed: dict[Hashable, Channel] = {}
        self._by_fd: dict[int, Channel | Listener] = {}
        self._connecting: set[Channel] = set()
        self._paused: set[Listener] = set()
        self._ids = itertools.count(1)
        self._sent_early: list[Hashable] = []
        self._reports_early = reports_early
        self._failed_early: dict[Hashable, str] = {}
        self._resolved: deque[tuple[Channel, list[ResolvedAddress], str]] = deque()
        self._alarm, self._bell = socket.socketpair()
        for end in (self._alarm, self._bell):
            end.setblocking(False)
        self._poller.register(self._alarm.fileno(), READ)

    def listen(
        self, host: str, port: int, make_channel: MakeChannel = Channel, max_frame_bytes: int | None = None
    ) -> Listener:
        """Accept connections on `host:port` (0: any free port); raise OSError on failure.

        `max_frame_bytes` limits their first frames, until the channel is admitted.
        """
        listener = self.bind(host, port, make_channel, max_frame_bytes)
        try:
            self.open_listener(listener)
        except OSError:
            self.close_listener(listener)
            raise
        return listener

    def bind(
        self,
        host: str,
        port: int,
        make_channel: MakeChannel = Channel,
        max_frame_bytes: int | None = None,
        limit: ConnectionLimit | None = None,
    ) -> Listener:
        """Bind a port as `listen` does. Connections are refused until `open_listener`.

        Connections count towards `limit`; without it, towards the selector's common limit.
        """
        listener = Listener(host, port, make_channel, max_frame_bytes, limit or self._limit)
        self._by_fd[listener.socket.fileno()] = listener
        return listener

    def open_listener(self, listener: Listener) -> None:
        """Accept connections on a bound port; raise OSError if another socket listens there already."""
        listener.open()
        self._poller.register(listener.socket.fileno(), 0 if listener.limit.is_reached else READ)

    def connect(
        self,
        channel_id: Hashable,
        host: str,
        port: int,
        *,
        timeout: float | None = None,
        how: MakeChannel | None = None,
    ) -> None:
        """Start to connect (the channel made by `how`); the result appears in `connected` or `disconnected`.

        Frames can be queued.
        """
        if channel_id in self._channels:
            raise ValueError(f"channel {channel_id!r} is already open")
        self._failed_early.pop(channel_id, None)
        channel = (how or self._make_channel)(channel_id, self._max_frame_bytes, (host, port), self._buffers)
        channel.buffer_sizes = self._socket_buffers
        channel.deadline = None if timeout is None else self._clock.monotonic() + timeout
        self._channels[channel_id] = channel
        self._connecting.add(channel)
        addresses = parse_numeric(host, port)
        if addresses:
            self._start(channel, addresses, "")
        else:
            resolve(host, port, lambda found, reason: self._store_resolved(channel, found, reason))

    def send(self, channel_id: Hashable, parts: Sequence[Part]) -> None:
        """Queue one frame, and send as much as the socket accepts."""
        channel = self._channels.get(channel_id)
        if channel is not None and (channel.corked or channel.outgoing or channel.connecting):
            channel.push(parts)
        elif channel is not None:
            self._write_early(channel, (parts,))

    def cork(self, channel_id: Hashable) -> None:
        """Keep frames until `uncork`, so that several small frames are sent in one call.

        No effect if frames are queued already.
        """
        channel = self._channels.get(channel_id)
        if channel is not None and not channel.outgoing:
            channel.corked = True

    def uncork(self, channel_id: Hashable) -> None:
        """Send the frames kept since `cork`, if any."""
        channel = self._channels.get(channel_id)
        if channel is not None and channel.corked:
            frames = channel.uncork()
            if not channel.connecting and (frames or channel.outgoing):
                self._write_early(channel, frames)

    def poll(self, timeout: float | None) -> None:
        """Wait up to `timeout` seconds (None: without limit) for events, and handle them."""
        self._begin()
        patience = self._wait_seconds(timeout)
        self.is_waiting = True
        found = self._poller.poll(patience)
        self.is_waiting = False
        # State is replaced only after the wait, which an exception of a signal handler may end.
        self.completed_sends, self._sent_early = self._sent_early, []
        self.disconnected, self._failed_early = self._failed_early, {}
        newcomers = 0
        for fd, ready in found:
            holder = self._by_fd.get(fd)
            if isinstance(holder, Channel):
                newcomers += holder.newcomer
                if newcomers <= NEWCOMERS_PER_TURN or not holder.newcomer:
                    try:
                        self._serve(holder, ready)
                    except MemoryError:
                        self._drop(holder, self.disconnected, NO_MEMORY)
            elif holder is not None:
                self._accept(holder)
            elif fd == self._alarm.fileno():
                self._drain_wakeups()
        self._take_resolved()
        if self._connecting or self._paused or self._memory.deadline() is not None:
            self._check_deadlines()

    def wait_span(self) -> float | None:
        """Return the seconds after which `poll` has work that `fileno` does not indicate; None: never."""
        if self._sent_early or self._failed_early or self._resolved or self._memory.has_readmitted():
            return 0.0
        return self._until_deadline(None)

    def wakeup(self) -> None:
        """Make the running or the next `poll` return; may be called by any thread."""
        try:
            self._bell.send(b"\0")
        except OSError:  # the pipe is full, so a wake-up is pending, or it is closed
            pass

    def set_max_accepted(self, most: int) -> None:
        """Change the common limit of accepted connections. Connections beyond it stay open."""
        self._limit.most = most
        self._apply_limit(self._limit)

    @property
    def is_full(self) -> bool:
        """True if the common limit of accepted connections is reached; new ones wait."""
        return self._limit.is_reached

    def mute(self, channel_id: Hashable) -> None:
        """Stop reading; frames that were received already are still returned."""
        self._set_muted(channel_id, True)

    def unmute(self, channel_id: Hashable) -> None:
        self._set_muted(channel_id, False)

    def queued_bytes(self, channel_id: Hashable) -> int:
        """Return the number of bytes that the socket did not accept yet, without frames kept by `cork`."""
        channel = self._channels.get(channel_id)
        return channel.outgoing.queued_bytes if channel is not None and not channel.corked else 0

    def peer(self, channel_id: Hashable) -> tuple[str, int]:
        """Return the peer's address; for a channel opened by this side, the arguments of `connect`."""
        return self._known(channel_id).peer

    def local(self, channel_id: Hashable) -> tuple[str, int]:
        """Return the local address; for an accepted channel, the address that the peer connected to."""
        return self._known(channel_id).local

    def listener(self, channel_id: Hashable) -> Listener | None:
        """Return the listener that accepted a channel."""
        return self._known(channel_id).listener

    def channel(self, channel_id: Hashable) -> Channel | None:
        """Return an open channel, for methods of its class; or None."""
        return self._channels.get(channel_id)

    def fileno(self) -> int:
        """Return a descriptor for an event loop: readable if `poll` has work."""
        return self._poller.fileno()

    def end_sending(self, channel_id: Hashable) -> None:
        """Shut down sending and continue to read, so that the peer receives everything that was sent to it.

        A socket that is closed with unread data resets the connection, and responses on their way are lost.
        """
        channel = self._channels.get(channel_id)
        if channel is not None and channel.socket is not None and not channel.outgoing and not channel.kept:
            channel.end_sending()
            self.unmute(channel_id)

    def close(self, channel_id: Hashable) -> None:
        """Close one channel at once; queued frames are dropped."""
        self._failed_early.pop(channel_id, None)
        channel = self._channels.get(channel_id)
        if channel is not None:
            self._remove(channel)

    def close_listener(self, listener: Listener) -> None:
        """Close a listener; its accepted connections stay open."""
        self._paused.discard(listener)
        if self._by_fd.pop(listener.socket.fileno(), None) is not None and listener.is_open:
            self._poller.unregister(listener.socket.fileno())
        listener.close()

    def close_all(self) -> None:
        """Close everything; the selector cannot be used afterwards."""
        for channel in list(self._channels.values()):
            self._remove(channel)
        for holder in list(self._by_fd.values()):
            if isinstance(holder, Listener):
                self.close_listener(holder)
        self._departed.clear()
        for each in (self._poller, self._alarm, self._bell):
            each.close()

    def reset(self) -> None:
        """Close all connections, in whatever state an exception inside a call has left them."""
        watched = [(fd, holder) for fd, holder in self._by_fd.items() if isinstance(holder, Channel)]
        for fd, _ in watched:
            try:
                self._poller.unregister(fd)
            except (OSError, ValueError):  # closed already, or not registered yet
                pass
            self._by_fd.pop(fd, None)
        for channel in {*(channel for _, channel in watched), *self._channels.values()}:
            channel.close()
            self._memory.release(channel.channel_id, channel.held_bytes)
        self._channels, self._departed, self._connecting = {}, {}, set()
        self._sent_early, self._failed_early = [], {}
        self._resolved.clear()
        self._buffers = FrameBuffers(self._reused_frame_bytes)
        self._begin()
        self.completed_sends, self.disconnected = [], {}
        self.is_waiting = False

    def disown(self) -> None:
        """Close the copies of all descriptors in a forked child; the parent is not affected."""
        for holder in self._by_fd.values():
            # Not unregistered, since the child shares the epoll instance with its parent; no TLS close_notify is sent
            # for it.
            holder.close_socket()
        self._by_fd.clear()
        self._channels.clear()
        for each in (self._poller, self._alarm, self._bell):
            each.close()

    def _begin(self) -> None:
        self.connected = []
        self.accepted = []
        self.completed_receives = []
        if self._memory.has_readmitted():
            self._readmit()
        if self._departed:
            self._departed = {i: channel for i, channel in self._departed.items() if i in self._failed_early}

    def _wait_seconds(self, timeout: float | None) -> float | None:
        """Return the time to wait: zero if there are unreported events, and at most until the next deadline."""
        if self._sent_early or self._failed_early or self._resolved or self._memory.has_readmitted():
            return 0.0
        return self._until_deadline(timeout)

    def _until_deadline(self, timeout: float | None) -> float | None:
        slowest = self._memory.deadline()
        if not self._connecting and not self._paused and slowest is None:
            return timeout
        moments = [c.deadline for c in self._connecting] + [listener.paused_until for listener in self._paused]
        moments.append(slowest)
        nearest = min((m for m in moments if m is not None), default=None)
        if nearest is None:
            return timeout
        left = max(0.0, nearest - self._clock.monotonic())
        return left if timeout is None else min(left, timeout)

    def _serve(self, channel: Channel, ready: int) -> None:
        if channel.connecting:
            self._finish_connecting(channel)
            return
        if ready & WRITE:
            self._write(channel, self.completed_sends, self.disconnected)
        if ready & (READ | BROKEN | ENDED) and channel.socket is not None:
            self._read(channel, ready)

    def _read(self, channel: Channel, ready: int) -> None:
        budget = READ_BYTES_PER_TURN
        if self._memory.is_exhausted and not channel.muted:
            budget = self._careful_budget(channel)
        if channel.muted or channel.half_closed or channel.stalled:
            if ready & BROKEN:
                self._drop(channel, self.disconnected, "the peer reset the connection")
            elif channel.stalled and ready & ENDED:
                self._handle_end_of_stalled(channel)
            return
        frames: list[memoryview] = []
        reason: str | None = None
        try:
            if not channel.read(self._scratch[:budget] if budget < SCRATCH_BYTES else self._scratch, frames, budget):
                self._handle_end(channel)
        except (OSError, ProtocolError) as error:
            reason = reason_of(error)
        for frame in frames:
            self.completed_receives.append((channel.channel_id, frame))
            self._memory.handed_out += len(frame)
        self._account_for(channel, frames)
        if reason is not None:
            self._drop(channel, self.disconnected, reason)

    def _careful_budget(self, channel: Channel) -> int:
        """Return the number of bytes that a connection may read while memory is short; stall it if there are none."""
        missing = channel.splitter.missing_bytes
        if not self._memory.can_continue_reading(channel.channel_id, missing, self._clock.monotonic()):
            channel.stalled = True
            self._update(channel)
        return READ_BYTES_PER_TURN if missing > SMALL_BYTES else CAREFUL_BYTES

    def _account_for(self, channel: Channel, frames: list[memoryview]) -> None:
        """Update the memory account of a connection after a read."""
        held = channel.splitter.held_bytes if channel.socket is not None else 0
        if held != channel.held_bytes and channel.channel_id in self._channels:
            self._memory.unfinished += held - channel.held_bytes
            channel.held_bytes = held
        if frames:
            self._memory.record_completion(channel.channel_id)

    def _readmit(self) -> None:
        for channel_id in self._memory.take_readmitted(self._clock.monotonic()):
            channel = self._channels[channel_id]
            channel.stalled = False
            self._update(channel)

    def _handle_end_of_stalled(self, channel: Channel) -> None:
        """Close a stalled channel with a frame that cannot be completed.

        Otherwise its memory would be held until its turn.
        """
        if channel.unread_bytes() < channel.splitter.missing_bytes:
            unfinished = channel.splitter.describe_unfinished()
            self._drop(channel, self.disconnected, f"the peer closed the connection when {unfinished}")
        else:
            channel.ended = True
            self._update(channel)

    def _handle_end(self, channel: Channel) -> None:
        """Handle the end of the stream; the peer may still read queued frames."""
        unfinished = channel.splitter.describe_unfinished()
        if unfinished:
            self._drop(channel, self.disconnected, f"the peer closed the connection when {unfinished}")
        elif channel.outgoing or channel.kept:
            channel.half_closed = True
            self._update(channel)
        else:
            self._drop(channel, self.disconnected, "")

    def _write_early(self, channel: Channel, frames: Frames) -> None:
        """Send outside of `poll`, which reports the outcome the next time."""
        self._write(channel, self._sent_early if self._reports_early else [], self._failed_early, frames)

    def _write(self, channel: Channel, sent: list[Hashable], failed: dict[Hashable, str], frames: Frames = ()) -> None:
        """Send these frames, or the queued ones."""
        try:
            completed = channel.send(frames) if frames else channel.write()
        except OSError as error:
            self._drop(channel, failed, reason_of(error))
            return
        sent.extend([channel.channel_id] * completed)
        if channel.half_closed and not channel.outgoing:
            self._drop(channel, failed, "")
        else:
            self._update(channel)

    def _accept(self, listener: Listener) -> None:
        now = self._clock.monotonic()
        try:
            for sock, peer in listener.accept(now, listener.limit.available):
                channel_id = next(self._ids)
                channel = accepted_channel(listener, sock, (channel_id, self._max_frame_bytes, peer, self._buffers))
                if channel is not None:
                    self._channels[channel_id] = channel
                    listener.limit.count += 1
                    self._adopt(channel)
                    self.accepted.append(channel_id)
        except MemoryError:
            listener.pause(now, NO_MEMORY)
        if listener.paused_until is not None:
            self._paused.add(listener)
            self._poller.modify(listener.socket.fileno(), 0)
        self._apply_limit(listener.limit)

    def _apply_limit(self, limit: ConnectionLimit) -> None:
        """Accept new connections, or leave them in the kernel's queue while the limit is reached."""
        is_reached = not limit.available
        if is_reached != limit.is_reached:
            limit.is_reached = is_reached
            for holder in self._by_fd.values():
                if (
                    isinstance(holder, Listener)
                    and holder.limit is limit
                    and holder.is_open
                    and holder not in self._paused
                ):
                    self._poller.modify(holder.socket.fileno(), 0 if is_reached else READ)

    def _start(self, channel: Channel, addresses: list[ResolvedAddress], reason: str) -> None:
        channel.addresses = addresses
        reason = reason or channel.start_connecting()
        if reason:
            self._drop(channel, self._failed_early, reason)
        else:
            self._adopt(channel)

    def _finish_connecting(self, channel: Channel) -> None:
        reason = channel.finish_connecting()
        if reason is None:  # the handshake continues
            self._update(channel)
            return
        if not reason:
            self._connecting.discard(channel)
            if channel.listener is None:
                self.connected.append(channel.channel_id)
            self._write(channel, self.completed_sends, self.disconnected)
            if channel.listener is not None and channel.socket is not None:
                self._read(channel, READ)  # the first request may have arrived with the end of the handshake
            return
        self._abandon(channel)
        channel.close_socket()
        if channel.addresses and not channel.start_connecting():
            self._adopt(channel)
        else:
            self._drop(channel, self.disconnected, reason)

    def _store_resolved(self, channel: Channel, addresses: list[ResolvedAddress], reason: str) -> None:
        """Store the result of a resolver's thread, which calls this method."""
        self._resolved.append((channel, addresses, reason))
        self.wakeup()

    def _take_resolved(self) -> None:
        while self._resolved:
            channel, addresses, reason = self._resolved.popleft()
            if self._channels.get(channel.channel_id) is channel:
                self._start(channel, addresses, reason)

    def _check_deadlines(self) -> None:
        now = self._clock.monotonic()
        for channel in [c for c in self._connecting if c.deadline is not None and c.deadline <= now]:
            self._drop(channel, self.disconnected, "connection timed out")
        for listener in [x for x in self._paused if x.paused_until is not None and x.paused_until <= now]:
            listener.paused_until = None
            self._paused.discard(listener)
            self._poller.modify(listener.socket.fileno(), 0 if listener.limit.is_reached else READ)
        slowest = self._channels.get(self._memory.find_too_slow(now))
        if slowest is not None:
            reason = f"memory for requests is short, and the peer is too slow: {slowest.splitter.describe_unfinished()}"
            self._drop(slowest, self.disconnected, reason)

    def _drain_wakeups(self) -> None:
        try:
            while self._alarm.recv(4096):
                pass
        except BlockingIOError:
            pass

    def _set_muted(self, channel_id: Hashable, muted: bool) -> None:
        channel = self.channel(channel_id)
        if channel is not None and channel.muted != muted:
            channel.muted = muted
            self._update(channel)

    def _known(self, channel_id: Hashable) -> Channel:
        channel = self._channels.get(channel_id) or self._departed.get(channel_id)
        if channel is None:
            raise KeyError(f"there is no channel {channel_id!r}")
        return channel

    def _adopt(self, channel: Channel) -> None:
        channel.interest = channel.wanted_events()
        fd = channel.open_socket.fileno()
        self._by_fd[fd] = channel
        self._poller.register(fd, channel.interest)

    def _update(self, channel: Channel) -> None:
        wanted = channel.wanted_events()
        if wanted != channel.interest and channel.socket is not None:
            channel.interest = wanted
            self._poller.modify(channel.socket.fileno(), wanted)

    def _abandon(self, channel: Channel) -> None:
        """Stop watching the channel's socket."""
        if channel.socket is not None and self._by_fd.pop(channel.socket.fileno(), None) is not None:
            self._poller.unregister(channel.socket.fileno())

    def _drop(self, channel: Channel, failed: dict[Hashable, str], reason: str) -> None:
        self._remove(channel)
        self._departed[channel.channel_id] = channel
        failed[channel.channel_id] = reason

    def _remove(self, channel: Channel) -> None:
        self._abandon(channel)
        channel.close()
        self._connecting.discard(channel)
        if self._channels.get(channel.channel_id) is channel:
            del self._channels[channel.channel_id]
            self._memory.release(channel.channel_id, channel.held_bytes)
            if channel.listener is not None:
                channel.listener.limit.count -= 1
                self._apply_limit(channel.listener.limit)
