"""Offsets by time: to begin reading at, and for whoever asks.

Plans and books, no I/O of its own: requests go through `ConsumerNetworkClient`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import partial

from ottla.client.consumer.consumer_network_client import ConsumerNetworkClient
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.list_offsets import Findings, questions, read_answer
from ottla.client.network.client_response import ClientResponse
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.client.runtime.deadline import Deadline
from ottla.client.runtime.future import Future
from ottla.client.runtime.steps import Steps
from ottla.errors import ErrorCode, KafkaError, KafkaTimeoutError, OttlaError, error_for, few_of, name_of, topic_asked
from ottla.model import EARLIEST, LATEST, OffsetAndTimestamp, TopicPartition

LOG = logging.getLogger(__name__)
READ_UNCOMMITTED = 0
UNKNOWN_GRACE = 3.0
"""Seconds that a topic nobody knows may take to become known: news of a new topic travels from broker to broker."""
BROKER_SAYS: Mapping[int, str] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: ": its leader cannot use the partition, as where what is stored is damaged; the log of that broker says why"
}
"""What an answer to ListOffsets, which has no place for a sentence, leaves out."""


class OffsetFetcher:
    """Looks offsets up: `reset_positions` in passing, `fetch_offsets` while the caller waits."""

    def __init__(
        self,
        client: ConsumerNetworkClient,
        subscriptions: SubscriptionState,
        retry_backoff: ExponentialBackoff,
        *,
        request_timeout_ms: int,
        isolation_level: int = READ_UNCOMMITTED,
    ) -> None:
        self._client = client
        self._subscriptions = subscriptions
        self._retry_backoff = retry_backoff
        self._request_timeout_ms = request_timeout_ms
        self._isolation_level = isolation_level
        self._clock = client.client.clock
        self._told: dict[TopicPartition, int] = {}
        """With which error it was told of partitions that nobody knows where to begin in them."""

    def reset_positions(self) -> None:
        """Ask for the positions that are missing; they appear while `poll` goes on."""
        now = self._clock.monotonic()
        wanted = self._subscriptions.needing_reset(now)
        if not wanted:
            return
        asked, leaderless = questions(
            self._client.metadata.cluster, wanted, self._isolation_level, self._request_timeout_ms
        )
        if leaderless:  # the poll that follows waits for the metadata, and the next one asks
            self._client.metadata.request_update()
        for node, request, tps in asked:
            self._subscriptions.postpone(tps, now + self._request_timeout_ms / 1000)
            future = self._client.send(node, request)
            future.add_done_callback(partial(self._handle_reset, tps, wanted))

    def fetch_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout: float
    ) -> Steps[dict[TopicPartition, OffsetAndTimestamp]]:
        """The first record at or after each timestamp (offset -1 where there is none), or a special timestamp's offset.

        Retries what may succeed later, up to `timeout` seconds; KafkaTimeoutError names what is missing.
        """
        started = self._clock.monotonic()
        deadline = Deadline.after(timeout, started)
        found: dict[TopicPartition, OffsetAndTimestamp] = {}
        left = dict(timestamps)
        attempts, why = 0, ""
        for topic in {tp.topic for tp in left}:
            self._client.metadata.want(topic, started)
        while left:
            # The last question has no time to be answered: what was said before counts.
            why = (yield from self._ask(left, found, deadline)) or why
            left = {tp: timestamp for tp, timestamp in left.items() if tp not in found}
            if left:
                attempts += 1
                yield from self._wait(left, why, deadline, attempts)
        return found

    def _ask(
        self, timestamps: dict[TopicPartition, int], found: dict[TopicPartition, OffsetAndTimestamp], deadline: Deadline
    ) -> Steps[str]:
        """One round: fill `found` with what is answered; returns why the rest is not, nothing where no answer came."""
        asked, leaderless = questions(
            self._client.metadata.cluster, timestamps, self._isolation_level, self._request_timeout_ms
        )
        why = "the leader is not known" if leaderless else ""
        futures = [self._client.send(node, request) for node, request, _ in asked]
        for future in futures:
            if not (yield from self._client.until(future.done, deadline.at)):
                return ""
            findings = findings_of(future)
            for tp, code in findings.fatal.items():
                raise error_for(code, f"{described(tp, timestamps[tp])} cannot be told{BROKER_SAYS.get(code, '')}")
            found.update(findings.offsets)
            why = ", ".join({name_of(code) for code in findings.retriable.values()}) or why
        return why

    def _wait(self, left: Iterable[TopicPartition], why: str, deadline: Deadline, attempts: int) -> Steps[None]:
        """Renew the metadata and back off before the next round; raises when there is no time for one."""
        now = self._clock.monotonic()
        if now - (deadline.at - deadline.span) >= UNKNOWN_GRACE and self._client.metadata.version:
            self.raise_unknown(left)
        if now >= deadline.at:
            raise self._timeout(left, why, deadline)
        yield from self._client.fresh_metadata(min(deadline.at, now + 1.0))
        pause = min(deadline.at, now + self._retry_backoff.span(attempts))
        while (rest := pause - self._clock.monotonic()) > 0 and (attempts > 1 or self._leaderless(left)):
            yield rest

    def _leaderless(self, tps: Iterable[TopicPartition]) -> bool:
        return any(self._client.metadata.cluster.leader(tp) is None for tp in tps)

    def raise_unknown(self, tps: Iterable[TopicPartition]) -> None:
        """A topic or partition that is unknown after a while does not exist: raise what says so."""
        cluster = self._client.metadata.cluster
        for tp in tps:
            info = cluster.topics.get(tp.topic)
            if info is not None and tp.partition >= len(info.partitions):
                text = f"topic {tp.topic!r} has partitions {info.partition_range}, not {tp.partition}"
                raise error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
            if info is None and tp.topic in cluster.errors:
                raise error_for(cluster.errors[tp.topic], topic_asked(cluster.errors[tp.topic], tp.topic))

    def _timeout(self, left: Iterable[TopicPartition], why: str, deadline: Deadline) -> KafkaTimeoutError:
        if not self._client.metadata.knows_more_than_bootstrap():  # none has answered, or none does any more
            setting = "default.api.timeout.ms, or the call's own timeout"
            return self._client.client.unavailable(deadline.span * 1000, setting)
        reason = why or self._client.client.trouble()
        return KafkaTimeoutError(f"no offset of {few_of(list(left))} within {deadline.span:g} s: {reason}")

    def _handle_reset(
        self, tps: list[TopicPartition], wanted: Mapping[TopicPartition, int], done: Future[ClientResponse]
    ) -> None:
        try:
            findings = findings_of(done)
        except OttlaError as error:
            self._client.metadata.fail(error)
            return
        for tp, found in findings.offsets.items():
            self._subscriptions.reset(tp, wanted[tp], found.offset)
            self._told.pop(tp, None)
        for tp, code in findings.fatal.items():
            if self._told.get(tp) != code:  # they are asked for again ten times a second
                LOG.warning("cannot look up where to begin in %s: %s", tp, refusal(code))
        self._told.update(findings.fatal)
        missing = [tp for tp in tps if tp not in findings.offsets]
        if missing:
            self._try_later(missing)

    def _try_later(self, tps: Iterable[TopicPartition]) -> None:
        self._client.metadata.request_update()
        self._subscriptions.postpone(tps, self._clock.monotonic() + self._retry_backoff.span(1))


def described(tp: TopicPartition, timestamp: int) -> str:
    """What was asked for, in words."""
    ends = {EARLIEST: f"the offset at which {tp} begins", LATEST: f"the offset at which {tp} ends"}
    return ends.get(timestamp, f"the offset of {tp} at timestamp {timestamp}")


def refusal(code: int) -> str:
    """Why a leader does not tell an offset, as far as its answer says."""
    return f"{name_of(code)}{BROKER_SAYS.get(code, '')}"


def findings_of(future: Future[ClientResponse]) -> Findings:
    """What an answer tells; nothing when it was lost with its connection. Raises what makes asking useless."""
    error = future.exception(0)
    if error is None:
        return read_answer(future.result(0).message)
    if isinstance(error, KafkaError) and error.retriable:
        return Findings()
    if isinstance(error, KafkaTimeoutError):
        return Findings()
    raise error
