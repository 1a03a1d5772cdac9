"""The clients that push metrics, their progress, and the response to each. Pure: time is an argument.

A client that sends a request before its interval has passed is rejected, unless the last error requires it to start again. A push after the
terminating one is rejected. These are Kafka's rules; unlike there, a client that left is remembered for three push intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct

from ottla.coordination.telemetry.subscription import Client, ClientSubscription, TelemetrySubscription, wanted_of
from ottla.errors import ErrorCode
from ottla.records.crc32c import crc32c

LEAST_KEPT_SECONDS = 60.0
MOST_INSTANCES = 16_384
BEGIN_ANEW = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
RESERVED = frozenset((UUID(int=0), UUID(int=1)))
"""Ids that no client has."""
COMPRESSIONS = (4, 3, 1, 2)
"""zstd, lz4, gzip, snappy: the preferred one first."""


class Instance(Struct):
    """One producer, consumer or the like."""

    client: Client
    wanted: ClientSubscription
    subscription_id: int
    version: int
    """The version of the subscriptions from which this was computed."""
    expires: float = 0.0
    requested_at: float = -math.inf
    pushed_at: float = -math.inf
    terminating: bool = False
    error: int = 0
    """The error code of the last response."""

    def can_request(self, now: float) -> bool:
        return now - max(self.requested_at, self.pushed_at) >= self.wanted.interval_ms / 1000

    def may_push(self, now: float) -> bool:
        """Return True if the interval has passed; also right after GetTelemetrySubscriptions, because clients choose the time of their first push at random."""
        if self.requested_at < self.pushed_at and now - self.pushed_at < self.wanted.interval_ms / 1000:
            return False
        self.pushed_at = now
        return True


class Instances:
    """The client instances that sent a request recently."""

    def __init__(self) -> None:
        self.subscriptions: tuple[TelemetrySubscription, ...] = ()
        self._version = 0
        self._instances: dict[UUID, Instance] = {}
        """By instance id; the one that is idle for longest is the first."""
        self._crowded_out: list[UUID] = []

    def __len__(self) -> int:
        return len(self._instances)

    def subscribe(self, subscriptions: Iterable[TelemetrySubscription]) -> None:
        self.subscriptions = tuple(subscriptions)
        self._version += 1

    def subscribe_client(self, instance_id: UUID, client: Client, now: float) -> Instance | int:
        """Return what a client has to push, or an error code."""
        instance = self._instance(instance_id, client, now)
        if not instance.can_request(now) and instance.error not in BEGIN_ANEW:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        instance.requested_at, instance.error = now, 0
        return instance

    def push(
        self,
        instance_id: UUID,
        client: Client,
        subscription_id: int,
        compression: int,
        size_bytes: int,
        max_bytes: int,
        now: float,
        *,
        terminating: bool,
    ) -> int:
        """Return 0 if a push is accepted, else an error code."""
        if instance_id in RESERVED:
            return ErrorCode.INVALID_REQUEST
        instance = self._instance(instance_id, client, now)
        instance.error = push_error(instance, subscription_id, compression, now, terminating=terminating)
        if not instance.error and size_bytes > max_bytes:
            instance.error = ErrorCode.TELEMETRY_TOO_LARGE
        instance.terminating = terminating
        return instance.error

    def refuse(self, instance_id: UUID, error: int) -> None:
        """Record that an accepted push was malformed."""
        self._instances[instance_id].error = error

    def expire(self, now: float) -> list[UUID]:
        """Remove and return instances that were idle for too long, and those that were removed to limit their number."""
        expired = [each for each, instance in self._instances.items() if instance.expires <= now]
        for each in expired:
            del self._instances[each]
        crowded_out, self._crowded_out = self._crowded_out, []
        return [*crowded_out, *expired]

    def _instance(self, instance_id: UUID, client: Client, now: float) -> Instance:
        instance = self._instances.pop(instance_id, None)
        if instance is None or instance.version != self._version:
            instance = self._made(instance_id, client if instance is None else instance.client)
        instance.expires = now + max(LEAST_KEPT_SECONDS, 3 * instance.wanted.interval_ms / 1000)
        self._instances[instance_id] = instance
        while len(self._instances) > MOST_INSTANCES:
            self._crowded_out.append(oldest := next(iter(self._instances)))
            del self._instances[oldest]
        return instance

    def _made(self, instance_id: UUID, client: Client) -> Instance:
        wanted = wanted_of(self.subscriptions, client)
        return Instance(client, wanted, subscription_id_of(wanted, instance_id), self._version)


def push_error(instance: Instance, subscription_id: int, compression: int, now: float, *, terminating: bool) -> int:
    """Kafka's checks in Kafka's order."""
    if instance.terminating:
        return ErrorCode.INVALID_REQUEST
    if not instance.may_push(now) and not terminating:
        return ErrorCode.THROTTLING_QUOTA_EXCEEDED
    if subscription_id != instance.subscription_id:
        return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    if compression != 0 and compression not in COMPRESSIONS:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return 0


def subscription_id_of(wanted: ClientSubscription, instance_id: UUID) -> int:
    """Return a number (int32) that changes when the client's subscription does."""
    text = f"{','.join(wanted.metrics)} {wanted.interval_ms}".encode()
    number = (crc32c(text) ^ instance_id.int) & 0xFFFF_FFFF
    return number - (1 << 32) if number >> 31 else number
