"""What clients have used, next to what they may: how long each is to be quiet.

There is one where something is limited, else `BrokerNode.quotas` is None and nothing is counted. Bytes are those of requests to
produce and of answers to fetch; time is what the loop spends on a request, of which there are 100 percent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.broker.requests.call import Call
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

PRODUCE, FETCH = 0, 1
MUTATIONS = {19: 6, 20: 5, 37: 3}
"""APIs that change topics, and since which version their clients know of refusals for that (KIP-599)."""
PERCENT = 100.0
MOST_COUNTED = 10_000
"""So many clients are counted at a time; names are whatever clients say."""
LONGEST_MS = 2**31 - 1
Sharers = tuple[str, str, str]


class QuotaManager:
    """Counts by who shares a limit."""

    def __init__(self, quotas: Callable[[], ClientQuotas], count: int, seconds: float) -> None:
        self._quotas = quotas
        self._count = count
        self._seconds = seconds
        self._rates: dict[Sharers, Rate] = {}
        self._buckets: dict[Sharers, TokenBucket] = {}

    def charge(self, call: Call, answer_bytes: Callable[[], int], now: float) -> int:
        """Count what an answered request has used; the ms for which its client is to be quiet.

        How long the answer is, is asked only where that is limited: it costs as much as the answer.
        """
        key = call.header.api_key
        used: float = 0
        if key == PRODUCE:
            used = self._use(PRODUCER_BYTE_RATE, call, lambda: call.size, now)
        elif key == FETCH:
            used = self._use(CONSUMER_BYTE_RATE, call, answer_bytes, now)
        elif key in MUTATIONS:
            used = self._owed(call, now)
        percent = self._use(REQUEST_PERCENTAGE, call, None, now)
        # A client that takes all the time there is must still be heard once in a while.
        return round(min(max(used, min(percent, self._seconds * 1000)), LONGEST_MS))

    def spend(self, call: Call, seconds: float, now: float) -> None:
        """Count time that the loop has spent on a request."""
        limit = self._limit(REQUEST_PERCENTAGE, call)
        if limit is not None:
            self._rate(REQUEST_PERCENTAGE, limit).record(seconds * PERCENT, now)

    def most_bytes(self, call: Call, wanted: int) -> int:
        """What an answer may hold, so that its client is not quiet for longer than it is measured."""
        limit = self._limit(CONSUMER_BYTE_RATE, call)
        return wanted if limit is None else min(wanted, max(int(limit.value * (self._count - 1) * self._seconds), 1))

    def may_change(self, call: Call, partitions: int, now: float) -> bool:
        """Whether so many partitions may be made or deleted; who knows of no refusal is made to wait afterwards."""
        bucket = self._bucket(call, now)
        if bucket is None:
            return True
        if call.version < MUTATIONS[call.header.api_key]:
            bucket.owe(partitions, now)
            return True
        return bucket.take(partitions, now)

    def _use(self, key: str, call: Call, used: Callable[[], float] | None, now: float) -> float:
        limit = self._limit(key, call)
        if limit is None:
            return 0.0
        rate = self._rate(key, limit)
        amount = 0.0 if used is None else used()
        if amount:
            rate.record(amount, now)
        return rate.throttle_ms(limit.value, now)

    def _owed(self, call: Call, now: float) -> float:
        bucket = self._bucket(call, now)
        return 0.0 if bucket is None else bucket.throttle_ms(now)

    def _limit(self, key: str, call: Call) -> Limit | None:
        _, _, user = call.connection.principal.partition(":")
        return self._quotas().limit(key, user, call.header.client_id or "")

    def _rate(self, key: str, limit: Limit) -> Rate:
        sharers = (key, *limit.sharers)
        rate = self._rates.get(sharers)
        if rate is None:
            make_room(self._rates)
            rate = self._rates[sharers] = Rate(self._count, self._seconds)
        return rate

    def _bucket(self, call: Call, now: float) -> TokenBucket | None:
        limit = self._limit(CONTROLLER_MUTATION_RATE, call)
        if limit is None:
            return None
        sharers = (CONTROLLER_MUTATION_RATE, *limit.sharers)
        bucket = self._buckets.get(sharers)
        if bucket is None or bucket.limit != limit.value:
            make_room(self._buckets)
            bucket = self._buckets[sharers] = TokenBucket(limit.value, self._count * self._seconds, now)
        return bucket


class ConnectionRates:
    """How often connections come, by where they come from."""

    def __init__(self, quotas: Callable[[], ClientQuotas], count: int, seconds: float) -> None:
        self._quotas = quotas
        self._count = count
        self._seconds = seconds
        self._rates: dict[str, Rate] = {}

    def delay_ms(self, host: str, now: float) -> float:
        """For how long a newcomer is to wait before it is sent away; 0 for one that may stay."""
        quotas = self._quotas()
        limit = quotas.limit_of_address(host) if quotas.values else None
        if limit is None:
            return 0.0
        rate = self._rates.get(host)
        if rate is None:
            make_room(self._rates)
            rate = self._rates[host] = Rate(self._count, self._seconds)
        rate.record(1, now)
        return rate.throttle_ms(limit, now)


def make_room(counted: dict[Any, Any]) -> None:
    """Let one more be counted, in place of who has been there for longest."""
    while len(counted) >= MOST_COUNTED:
        del counted[next(iter(counted))]
