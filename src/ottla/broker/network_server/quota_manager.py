"""Usage of clients against their quotas, and the throttle time of each (KIP-13, KIP-124, KIP-599).

`BrokerNode.quotas` is None without quotas, and nothing is counted. Bytes are those of Produce requests and of Fetch
and ShareFetch responses. Request time is the time of the event loop, 100 percent of one thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.network_server.call import Call
from ottla.coordination.quotas.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    ClientQuotas,
    Limit,
)
from ottla.coordination.quotas.rate import Rate
from ottla.coordination.quotas.token_bucket import TokenBucket

PRODUCE, FETCH, SHARE_FETCH = 0, 1, 78
MUTATIONS = {19: 6, 20: 5, 37: 3}
"""The APIs that change topics, and their first versions with THROTTLING_QUOTA_EXCEEDED (KIP-599)."""
PERCENT = 100.0
MOST_COUNTED = 10_000
"""The maximum number of entities, as clients choose their names."""
LONGEST_MS = 2**31 - 1
Sharers = tuple[str, str, str]


class QuotaManager:
    """Counts usage by the entity that shares a quota."""

    def __init__(self, quotas: Callable[[], ClientQuotas], count: int, seconds: float) -> None:
        self._quotas = quotas
        self._count = count
        self._seconds = seconds
        self._rates: dict[Sharers, Rate] = {}
        self._buckets: dict[Sharers, TokenBucket] = {}

    def charge_bytes(self, call: Call, answer_bytes: Callable[[], int], now: float) -> int:
        """Count the usage of an answered request. Return the throttle time in milliseconds.

        `answer_bytes` is called only if bytes are limited: it costs as much as encoding the response.
        """
        key = call.header.api_key
        used: float = 0
        if key == PRODUCE:
            used = self._record_usage(PRODUCER_BYTE_RATE, call, lambda: call.size, now)
        elif key in (FETCH, SHARE_FETCH):
            used = self._record_usage(CONSUMER_BYTE_RATE, call, answer_bytes, now)
        elif key in MUTATIONS:
            used = self._find_throttle_time(call, now)
        percent = self._record_usage(REQUEST_PERCENTAGE, call, None, now)
        # A client that uses all of the loop's time must still be served from time to time.
        return round(min(max(used, min(percent, self._seconds * 1000)), LONGEST_MS))

    def charge_time(self, call: Call, seconds: float, now: float) -> None:
        """Count time that the loop has spent on a request."""
        limit = self._find_limit(REQUEST_PERCENTAGE, call)
        if limit is not None:
            self._find_rate(REQUEST_PERCENTAGE, limit).record(seconds * PERCENT, now)

    def most_bytes(self, call: Call, wanted: int) -> int:
        """Return the largest response of a fetch that keeps the throttle time within the measured window."""
        limit = self._find_limit(CONSUMER_BYTE_RATE, call)
        return wanted if limit is None else min(wanted, max(int(limit.value * (self._count - 1) * self._seconds), 1))

    def may_change(self, call: Call, partitions: int, now: float) -> bool:
        """Return True if that many partitions may be created or deleted.

        Versions without THROTTLING_QUOTA_EXCEEDED are throttled afterwards instead.
        """
        bucket = self._find_bucket(call, now)
        if bucket is None:
            return True
        if call.version < MUTATIONS[call.header.api_key]:
            bucket.take_into_debt(partitions, now)
            return True
        return bucket.try_take(partitions, now)

    def _record_usage(self, key: str, call: Call, used: Callable[[], float] | None, now: float) -> float:
        limit = self._find_limit(key, call)
        if limit is None:
            return 0.0
        rate = self._find_rate(key, limit)
        amount = 0.0 if used is None else used()
        if amount:
            rate.record(amount, now)
        return rate.throttle_ms(limit.value, now)

    def _find_throttle_time(self, call: Call, now: float) -> float:
        bucket = self._find_bucket(call, now)
        return 0.0 if bucket is None else bucket.throttle_ms(now)

    def _find_limit(self, key: str, call: Call) -> Limit | None:
        _, _, user = call.connection.principal.partition(":")
        return self._quotas().limit(key, user, call.header.client_id or "")

    def _find_rate(self, key: str, limit: Limit) -> Rate:
        sharers = (key, *limit.sharers)
        rate = self._rates.get(sharers)
        if rate is None:
            evict_oldest(self._rates)
            rate = self._rates[sharers] = Rate(self._count, self._seconds)
        return rate

    def _find_bucket(self, call: Call, now: float) -> TokenBucket | None:
        limit = self._find_limit(CONTROLLER_MUTATION_RATE, call)
        if limit is None:
            return None
        sharers = (CONTROLLER_MUTATION_RATE, *limit.sharers)
        bucket = self._buckets.get(sharers)
        if bucket is None or bucket.limit != limit.value:
            evict_oldest(self._buckets)
            bucket = self._buckets[sharers] = TokenBucket(limit.value, self._count * self._seconds, now)
        return bucket


class ConnectionRates:
    """The rates of new connections, by address and by listener."""

    def __init__(self, quotas: Callable[[], ClientQuotas], count: int, seconds: float) -> None:
        self._quotas = quotas
        self._count = count
        self._seconds = seconds
        self._rates: dict[str, Rate] = {}

    def delay_ms(self, host: str, now: float) -> float:
        """Return the delay before a new connection is closed; 0 if it is accepted."""
        quotas = self._quotas()
        limit = quotas.limit_of_address(host) if quotas.values else None
        if limit is None:
            return 0.0
        rate = self._rates.get(host)
        if rate is None:
            evict_oldest(self._rates)
            rate = self._rates[host] = Rate(self._count, self._seconds)
        rate.record(1, now)
        return rate.throttle_ms(limit, now)


def evict_oldest(counted: dict[Any, Any]) -> None:
    """Remove the oldest entries until another one fits."""
    while len(counted) >= MOST_COUNTED:
        del counted[next(iter(counted))]
