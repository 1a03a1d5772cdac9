"""Which clients push metrics, how far each is, and what each is answered. Pure: time comes in.

A client that asks or pushes before its interval is over is refused, but at once after a refusal that asks it to begin anew; a
push after the last one is refused. Kafka's rules; other than there a client that has gone stays until it would have pushed three times.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct

from ottla.coordination.telemetry.subscription import Client, Subscription, Wanted, wanted_of
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
    wanted: Wanted
    subscription_id: int
    version: int
    """Of the subscriptions that this was made from."""
    expires: float = 0.0
    asked_at: float = -math.inf
    pushed_at: float = -math.inf
    terminating: bool = False
    error: int = 0
    """What the last answer said."""

    def may_ask(self, now: float) -> bool:
        return now - max(self.asked_at, self.pushed_at) >= self.wanted.interval_ms / 1000

    def may_push(self, now: float) -> bool:
        """At once after it has asked, since clients draw the time of their first push by chance."""
        if self.asked_at < self.pushed_at and now - self.pushed_at < self.wanted.interval_ms / 1000:
            return False
        self.pushed_at = now
        return True


class Instances:
    """Those that this broker has heard of lately."""

    def __init__(self) -> None:
        self.subscriptions: tuple[Subscription, ...] = ()
        self._version = 0
        self._instances: dict[UUID, Instance] = {}
        """The one that was silent longest stands first."""
        self._crowded_out: list[UUID] = []

    def __len__(self) -> int:
        return len(self._instances)

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """Clients are to be asked for something else."""
        self.subscriptions = tuple(subscriptions)
        self._version += 1

    def ask(self, instance_id: UUID, client: Client, now: float) -> Instance | int:
        """What a client is to push; or the error that it is answered."""
        instance = self._instance(instance_id, client, now)
        if not instance.may_ask(now) and instance.error not in BEGIN_ANEW:
            return ErrorCode.THROTTLING_QUOTA_EXCEEDED
        instance.asked_at, instance.error = now, 0
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
        """Whether what a client has pushed is taken: 0, or the error that it is answered."""
        if instance_id in RESERVED:
            return ErrorCode.INVALID_REQUEST
        instance = self._instance(instance_id, client, now)
        instance.error = push_error(instance, subscription_id, compression, now, terminating=terminating)
        if not instance.error and size_bytes > max_bytes:
            instance.error = ErrorCode.TELEMETRY_TOO_LARGE
        instance.terminating = terminating
        return instance.error

    def refuse(self, instance_id: UUID, error: int) -> None:
        """What was taken could not be read after all."""
        self._instances[instance_id].error = error

    def expire(self, now: float) -> list[UUID]:
        """Those that have been silent for too long go, and are told, with those that too many others followed."""
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


def subscription_id_of(wanted: Wanted, instance_id: UUID) -> int:
    """Another number as soon as a client is asked for something else; 32 bits with a sign."""
    told = f"{','.join(wanted.metrics)} {wanted.interval_ms}".encode()
    number = (crc32c(told) ^ instance_id.int) & 0xFFFF_FFFF
    return number - (1 << 32) if number >> 31 else number
