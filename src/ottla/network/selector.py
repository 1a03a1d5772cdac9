"""Many connections, one thread: what happened since the last `poll`.

Knows frames, not messages. Nothing here raises because of what a peer did: that is a reason in `disconnected`.
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
from ottla.network.frame_buffers import MOST_BYTES, FrameBuffers, untouched
from ottla.network.listener import ConnectionLimit, Listener
from ottla.network.memory_budget import CAREFUL_BYTES, SMALL_BYTES, UNLIMITED, MemoryBudget
from ottla.network.poller import BROKEN, ENDED, READ, WRITE, Poller, default_poller
from ottla.network.resolver import Address, numeric, resolve
from ottla.network.send_queue import Frames

SCRATCH_BYTES = 256 * 1024
NO_MEMORY = "the process has no memory left"
NEWCOMERS_PER_TURN = 1
"""Steps of handshakes and logins, up to a millisecond each, that are done at a time; of others the next poll tells."""


class Selector:
    """Connections by id, polled together.

    A channel that has ended stays askable for its addresses until the next `poll`; everything else about it is
    answered as for an empty channel, and a frame sent to it is dropped.
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
        tells_early: bool = True,
    ) -> None:
        """`memory` bounds what is received and not yet done with; beyond `max_accepted` newcomers are kept waiting.

        The memory of frames of up to `reused_frame_bytes` is used again. `socket_buffers` are the sizes of those of
        connections of our own making, for what is sent and received; negative: as the operating system likes. These
        are made by `make_channel`. Without `tells_early` the next `poll` does not tell of frames that the socket took
        within `send`.
        """
        self.connected: list[Hashable] = []
        self.accepted: list[int] = []
        self.completed_receives: list[tuple[Hashable, memoryview]] = []
        """Frames without their length; the memory belongs to whoever takes them, and may be written to."""
        self.completed_sends: list[Hashable] = []
        """One entry per frame."""
        self.disconnected: dict[Hashable, str] = {}
        """Why; empty for an orderly close by the peer. What was closed on our side does not appear."""
        self.is_waiting = False
        """True during the wait of `poll`, and after an exception has ended it there: then nothing was left half done."""
        self._max_frame_bytes = max_frame_bytes
        self._reused_frame_bytes = reused_frame_bytes
        self._socket_buffers = socket_buffers
        self._make_channel = make_channel
        self._clock = clock or SystemClock()
        self._poller = poller or default_poller()
        self._scratch = memoryview(untouched(SCRATCH_BYTES))
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
        self._tells_early = tells_early
        self._failed_early: dict[Hashable, str] = {}
        self._resolved: deque[tuple[Channel, list[Address], str]] = deque()
        self._alarm, self._bell = socket.socketpair()
        for end in (self._alarm, self._bell):
            end.setblocking(False)
        self._poller.register(self._alarm.fileno(), READ)

    def listen(
        self, host: str, port: int, make_channel: MakeChannel = Channel, max_frame_bytes: int | None = None
    ) -> Listener:
        """Accept connections on `host:port` (0: any free port), with such frames at first; OSError says why not."""
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
        """Reserve a port as `listen` does. Connections are refused until `open_listener`.

        Connections count towards `limit`; without it, towards the limit that most listeners share.
        """
        listener = Listener(host, port, make_channel, max_frame_bytes, limit or self._limit)
        self._by_fd[listener.socket.fileno()] = listener
        return listener

    def open_listener(self, listener: Listener) -> None:
        """Accept connections on a port that was bound; OSError if another socket listens there already."""
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
        """Start connecting (the channel made `how`); `connected` or `disconnected` tells. Frames may be sent already."""
        if channel_id in self._channels:
            raise ValueError(f"channel {channel_id!r} is already open")
        self._failed_early.pop(channel_id, None)
        channel = (how or self._make_channel)(channel_id, self._max_frame_bytes, (host, port), self._buffers)
        channel.buffer_sizes = self._socket_buffers
        channel.deadline = None if timeout is None else self._clock.monotonic() + timeout
        self._channels[channel_id] = channel
        self._connecting.add(channel)
        addresses = numeric(host, port)
        if addresses:
            self._start(channel, addresses, "")
        else:
            resolve(host, port, lambda found, reason: self._tell_resolved(channel, found, reason))

    def send(self, channel_id: Hashable, parts: Sequence[Part]) -> None:
        """Queue one frame and send what the socket takes at once."""
        channel = self._channels.get(channel_id)
        if channel is not None and (channel.corked or channel.outgoing or channel.connecting):
            channel.push(parts)
        elif channel is not None:
            self._write_early(channel, (parts,))

    def cork(self, channel_id: Hashable) -> None:
        """Keep what is sent until `uncork`: several small frames then leave in one call. Not where some wait already."""
        channel = self._channels.get(channel_id)
        if channel is not None and not channel.outgoing:
            channel.corked = True

    def uncork(self, channel_id: Hashable) -> None:
        """Send what was kept; nothing happens where nothing was."""
        channel = self._channels.get(channel_id)
        if channel is not None and channel.corked:
            frames = channel.uncork()
            if not channel.connecting and (frames or channel.outgoing):
                self._write_early(channel, frames)

    def poll(self, timeout: float | None) -> None:
        """Wait up to `timeout` seconds (None: for ever) for something to happen, and do what can be done."""
        self._begin()
        patience = self._patience(timeout)
        self.is_waiting = True
        found = self._poller.poll(patience)
        self.is_waiting = False
        # After the wait, which a signal handler may end by an exception: nothing may be lost by that.
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
                self._hear_alarm()
        self._take_resolved()
        if self._connecting or self._paused or self._memory.deadline() is not None:
            self._look_at_the_clock()

    def wait_span(self) -> float | None:
        """Seconds after which `poll` has something to do that `fileno` does not tell of; None: never."""
        if self._sent_early or self._failed_early or self._resolved or self._memory.has_news():
            return 0.0
        return self._until_deadline(None)

    def wakeup(self) -> None:
        """Make the running or the next `poll` return; from any thread."""
        try:
            self._bell.send(b"\0")
        except OSError:  # so many alarms that the pipe is full, or closed: it rings already, or nobody listens
            pass

    def allow(self, most: int) -> None:
        """Change the limit that most listeners share. Connections beyond it stay open."""
        self._limit.most = most
        self._apply_limit(self._limit)

    @property
    def full(self) -> bool:
        """True if as many connections are accepted as the shared limit allows; newcomers wait."""
        return self._limit.is_reached

    def mute(self, channel_id: Hashable) -> None:
        """Stop reading; frames that are already here are still handed out."""
        self._set_muted(channel_id, True)

    def unmute(self, channel_id: Hashable) -> None:
        self._set_muted(channel_id, False)

    def queued_bytes(self, channel_id: Hashable) -> int:
        """Bytes that the socket did not take yet; what is kept for others to come does not count."""
        channel = self._channels.get(channel_id)
        return channel.outgoing.queued_bytes if channel is not None and not channel.corked else 0

    def peer(self, channel_id: Hashable) -> tuple[str, int]:
        """The other side's address; for a channel we opened, as `connect` was told."""
        return self._known(channel_id).peer

    def local(self, channel_id: Hashable) -> tuple[str, int]:
        """Our side's address: for an accepted channel, the one the peer reached us by."""
        return self._known(channel_id).local

    def listener(self, channel_id: Hashable) -> Listener | None:
        """Where an accepted channel came in."""
        return self._known(channel_id).listener

    def channel(self, channel_id: Hashable) -> Channel | None:
        """One that is open, for what only its kind can do."""
        return self._channels.get(channel_id)

    def fileno(self) -> int:
        """A descriptor an event loop can watch: readable when `poll` has something to do."""
        return self._poller.fileno()

    def end_sending(self, channel_id: Hashable) -> None:
        """Tell the peer that nothing more comes; what it still sends is read, so that it is not lost what it was sent.

        A socket that is closed with something unread in it resets the connection, answers under way included.
        """
        channel = self._channels.get(channel_id)
        if channel is not None and channel.socket is not None and not channel.outgoing and not channel.kept:
            channel.end_sending()
            self.unmute(channel_id)

    def close(self, channel_id: Hashable) -> None:
        """Close one channel at once; what is queued is dropped."""
        self._failed_early.pop(channel_id, None)
        channel = self._channels.get(channel_id)
        if channel is not None:
            self._remove(channel)

    def close_listener(self, listener: Listener) -> None:
        """Accept no more on this one."""
        self._paused.discard(listener)
        if self._by_fd.pop(listener.socket.fileno(), None) is not None and listener.is_open:
            self._poller.unregister(listener.socket.fileno())
        listener.close()

    def close_all(self) -> None:
        """Close everything; the selector is of no more use."""
        for channel in list(self._channels.values()):
            self._remove(channel)
        for holder in list(self._by_fd.values()):
            if isinstance(holder, Listener):
                self.close_listener(holder)
        self._departed.clear()
        for each in (self._poller, self._alarm, self._bell):
            each.close()

    def reset(self) -> None:
        """Close all connections, whatever state an exception in the middle of a call has left them in."""
        watched = [(fd, holder) for fd, holder in self._by_fd.items() if isinstance(holder, Channel)]
        for fd, _ in watched:
            try:
                self._poller.unregister(fd)
            except (OSError, ValueError):  # it is closed already, or was not registered yet
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
        """In a child that was forked: close the copies of all descriptors; the parent does not notice."""
        for holder in self._by_fd.values():
            # Not unregistered: the child shares what the parent polls. And no farewell is said in the parent's name.
            holder.close_socket()
        self._by_fd.clear()
        self._channels.clear()
        for each in (self._poller, self._alarm, self._bell):
            each.close()

    def _begin(self) -> None:
        self.connected = []
        self.accepted = []
        self.completed_receives = []
        if self._memory.has_news():
            self._readmit()
        if self._departed:
            self._departed = {i: channel for i, channel in self._departed.items() if i in self._failed_early}

    def _patience(self, timeout: float | None) -> float | None:
        """How long to wait: not at all when there is news already, and not beyond the next deadline."""
        if self._sent_early or self._failed_early or self._resolved or self._memory.has_news():
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
        if self._memory.short and not channel.muted:
            budget = self._careful_budget(channel)
        if channel.muted or channel.half_closed or channel.stalled:
            if ready & BROKEN:
                self._drop(channel, self.disconnected, "the peer reset the connection")
            elif channel.stalled and ready & ENDED:
                self._hear_end_of_stalled(channel)
            return
        frames: list[memoryview] = []
        reason: str | None = None
        try:
            if not channel.read(self._scratch[:budget] if budget < SCRATCH_BYTES else self._scratch, frames, budget):
                self._hear_end(channel)
        except (OSError, ProtocolError) as error:
            reason = reason_of(error)
        for frame in frames:
            self.completed_receives.append((channel.channel_id, frame))
            self._memory.handed_out += len(frame)
        self._account_for(channel, frames)
        if reason is not None:
            self._drop(channel, self.disconnected, reason)

    def _careful_budget(self, channel: Channel) -> int:
        """How much a connection may read when memory is short; it is stalled where that is nothing."""
        missing = channel.splitter.missing_bytes
        if not self._memory.may_go_on(channel.channel_id, missing, self._clock.monotonic()):
            channel.stalled = True
            self._update(channel)
        return READ_BYTES_PER_TURN if missing > SMALL_BYTES else CAREFUL_BYTES

    def _account_for(self, channel: Channel, frames: list[memoryview]) -> None:
        """Note what a connection holds after it has read."""
        held = channel.splitter.held_bytes if channel.socket is not None else 0
        if held != channel.held_bytes and channel.channel_id in self._channels:
            self._memory.unfinished += held - channel.held_bytes
            channel.held_bytes = held
        if frames:
            self._memory.completed(channel.channel_id)

    def _readmit(self) -> None:
        for channel_id in self._memory.readmit(self._clock.monotonic()):
            channel = self._channels[channel_id]
            channel.stalled = False
            self._update(channel)

    def _hear_end_of_stalled(self, channel: Channel) -> None:
        """Free the memory of a frame that cannot become whole any more; without this it would wait for its turn to be read."""
        if channel.unread_bytes() < channel.splitter.missing_bytes:
            unfinished = channel.splitter.unfinished()
            self._drop(channel, self.disconnected, f"the peer closed the connection when {unfinished}")
        else:
            channel.ended = True
            self._update(channel)

    def _hear_end(self, channel: Channel) -> None:
        """The peer sends no more; it may still be reading what we have for it."""
        unfinished = channel.splitter.unfinished()
        if unfinished:
            self._drop(channel, self.disconnected, f"the peer closed the connection when {unfinished}")
        elif channel.outgoing or channel.kept:
            channel.half_closed = True
            self._update(channel)
        else:
            self._drop(channel, self.disconnected, "")

    def _write_early(self, channel: Channel, frames: Frames) -> None:
        """Send outside of `poll`, which tells the outcome the next time."""
        self._write(channel, self._sent_early if self._tells_early else [], self._failed_early, frames)

    def _write(self, channel: Channel, sent: list[Hashable], failed: dict[Hashable, str], frames: Frames = ()) -> None:
        """Send these frames, or what waits."""
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
            for sock, peer in listener.accept(now, listener.limit.room):
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
        """Accept newcomers, or leave them in the kernel's queue while the limit is reached."""
        is_reached = not limit.room
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

    def _start(self, channel: Channel, addresses: list[Address], reason: str) -> None:
        channel.addresses = addresses
        reason = reason or channel.start_connecting()
        if reason:
            self._drop(channel, self._failed_early, reason)
        else:
            self._adopt(channel)

    def _finish_connecting(self, channel: Channel) -> None:
        reason = channel.finish_connecting()
        if reason is None:  # a handshake goes on
            self._update(channel)
            return
        if not reason:
            self._connecting.discard(channel)
            if channel.listener is None:
                self.connected.append(channel.channel_id)
            self._write(channel, self.completed_sends, self.disconnected)
            if channel.listener is not None and channel.socket is not None:
                self._read(channel, READ)  # a first request may have come with the end of the handshake
            return
        self._abandon(channel)
        channel.close_socket()
        if channel.addresses and not channel.start_connecting():
            self._adopt(channel)
        else:
            self._drop(channel, self.disconnected, reason)

    def _tell_resolved(self, channel: Channel, addresses: list[Address], reason: str) -> None:
        """Called by the thread that looked the name up."""
        self._resolved.append((channel, addresses, reason))
        self.wakeup()

    def _take_resolved(self) -> None:
        while self._resolved:
            channel, addresses, reason = self._resolved.popleft()
            if self._channels.get(channel.channel_id) is channel:
                self._start(channel, addresses, reason)

    def _look_at_the_clock(self) -> None:
        now = self._clock.monotonic()
        for channel in [c for c in self._connecting if c.deadline is not None and c.deadline <= now]:
            self._drop(channel, self.disconnected, "connection timed out")
        for listener in [x for x in self._paused if x.paused_until is not None and x.paused_until <= now]:
            listener.paused_until = None
            self._paused.discard(listener)
            self._poller.modify(listener.socket.fileno(), 0 if listener.limit.is_reached else READ)
        slowest = self._channels.get(self._memory.too_slow(now))
        if slowest is not None:
            reason = f"memory for requests is short, and {slowest.splitter.unfinished()}, too slowly"
            self._drop(slowest, self.disconnected, reason)

    def _hear_alarm(self) -> None:
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
        channel.interest = channel.wanted()
        fd = channel.open_socket.fileno()
        self._by_fd[fd] = channel
        self._poller.register(fd, channel.interest)

    def _update(self, channel: Channel) -> None:
        wanted = channel.wanted()
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
