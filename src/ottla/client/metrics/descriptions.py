"""The kind, unit and description of every metric of `metrics()`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

COUNTER, GAUGE = "counter", "gauge"
NS, MS, SECONDS, BYTES, RATIO, NONE = "ns", "ms", "seconds", "bytes", "ratio", ""


class MetricDescription(NamedTuple):
    kind: str
    unit: str
    text: str


def describe_count(name: str, what: str, unit: str = NONE) -> dict[str, MetricDescription]:
    """Describe `name-total` and `name-rate`."""
    return {
        f"{name}-total": MetricDescription(COUNTER, unit, f"{what}, since the client started."),
        f"{name}-rate": MetricDescription(GAUGE, unit, f"{what}, per second."),
    }


def describe_spread(name: str, what: str, unit: str) -> dict[str, MetricDescription]:
    """Describe `name-avg` and `name-max`."""
    return {
        f"{name}-avg": MetricDescription(GAUGE, unit, f"{what}: the average."),
        f"{name}-max": MetricDescription(GAUGE, unit, f"{what}: the maximum."),
    }


def describe_times(kinds: Mapping[str, str]) -> dict[str, MetricDescription]:
    """Describe `kind-time-ns-total` of each kind of call."""
    return {f"{kind}-time-ns-total": MetricDescription(COUNTER, NS, f"{what}.") for kind, what in kinds.items()}


TRAFFIC = {
    **describe_count("request", "Requests sent"),
    **describe_spread("request-size", "Bytes of a request", BYTES),
    **describe_count("outgoing-byte", "Bytes sent", BYTES),
    **describe_count("response", "Responses received"),
    **describe_count("incoming-byte", "Bytes received", BYTES),
    **describe_spread(
        "request-latency",
        "Time from sending a request to its response, including the time a fetch waits for records",
        MS,
    ),
}
CLIENT = {
    **TRAFFIC,
    "connection-count": MetricDescription(GAUGE, NONE, "Connections that are ready."),
    **describe_count("connection-creation", "Connections opened"),
    **describe_count("connection-close", "Connections closed by either side"),
    **describe_count(
        "successful-authentication", "Successful logins of new connections; with SSL alone, successful handshakes"
    ),
    **describe_count("failed-authentication", "Failed logins or handshakes of new connections"),
    **describe_count("successful-reauthentication", "Successful repeated logins of open connections"),
    **describe_count("failed-reauthentication", "Failed repeated logins of open connections"),
    **describe_spread("reauthentication-latency", "Duration of a repeated login", MS),
    "requests-in-flight": MetricDescription(GAUGE, NONE, "Requests without a response so far."),
    "metadata-age": MetricDescription(GAUGE, SECONDS, "Seconds since the last metadata update."),
}
SENDING = {
    **describe_count("record-send", "Records sent; each retry of a batch counts again"),
    **describe_count("byte", "Compressed bytes of batches sent", BYTES),
    **describe_count("record-retry", "Records retried"),
    **describe_count("record-error", "Records that failed"),
}
PRODUCER_CALLS = {
    "flush": "Time that callers spent in flush",
    "metadata-wait": "Time that callers waited for topic metadata",
    "bufferpool-wait": "Time that callers waited for memory (buffer.memory)",
    "txn-init": "Time that callers spent in init_transactions",
    "txn-begin": "Time that callers spent in begin_transaction",
    "txn-send-offsets": "Time that callers spent in send_offsets_to_transaction",
    "txn-commit": "Time that callers spent in commit_transaction",
    "txn-abort": "Time that callers spent in abort_transaction",
}
PRODUCER = {
    **CLIENT,
    **SENDING,
    **describe_times(PRODUCER_CALLS),
    "bufferpool-wait-ratio": MetricDescription(
        GAUGE, RATIO, "The fraction of time that callers wait for memory; above 1 if several wait."
    ),
    **describe_count("buffer-exhausted", "Records rejected because no memory was free within max.block.ms"),
    **describe_spread("produce-throttle-time", "Throttle time that the broker requested for a quota", MS),
    "compression-rate-avg": MetricDescription(
        GAUGE, RATIO, "Compressed bytes of a batch divided by its uncompressed bytes."
    ),
    **describe_spread("batch-size", "Compressed bytes of a batch", BYTES),
    **describe_spread("record-queue-time", "Time from the first record of a batch until it was sent", MS),
    "records-per-request-avg": MetricDescription(GAUGE, NONE, "Records of a request, on average."),
    **describe_count("batch-split", "Batches split and sent again because the broker found them too large"),
    "buffer-total-bytes": MetricDescription(GAUGE, BYTES, "Memory for undelivered records: buffer.memory."),
    "buffer-available-bytes": MetricDescription(GAUGE, BYTES, "Memory of buffer.memory that is free."),
    "waiting-threads": MetricDescription(GAUGE, NONE, "Calls of send that are waiting for memory."),
}
BY_TOPIC = {
    "compression-rate": MetricDescription(GAUGE, RATIO, "Average compression ratio of the topic's batches."),
}
CONSUMED = {
    **describe_count("records-consumed", "Records returned to the user"),
    **describe_count("bytes-consumed", "Bytes of returned records, as fetched", BYTES),
}
LAG = {
    "records-lag": MetricDescription(
        GAUGE, NONE, "Offsets between the position and the last known end of the partition."
    ),
}
LEAD = {
    "records-lead": MetricDescription(
        GAUGE,
        NONE,
        "Offsets between the last known start of the partition and the position; near 0, retention may delete unread records.",
    ),
    "preferred-read-replica": MetricDescription(
        GAUGE, NONE, "The follower that records are fetched from, -1 for the leader."
    ),
}
FETCHES = {
    **CONSUMED,
    **describe_count("fetch", "Fetch responses received"),
    "records-per-request-avg": MetricDescription(
        GAUGE, NONE, "Average number of records per non-empty fetch response."
    ),
    **describe_spread("fetch-throttle-time", "Throttle time that the broker requested for a quota", MS),
    **describe_spread(
        "fetch-latency", "Time from a fetch request to its response, including the broker's wait for records", MS
    ),
    **describe_spread("fetch-size", "Bytes of records in a fetch response", BYTES),
    "buffered-bytes": MetricDescription(GAUGE, BYTES, "Bytes fetched and not yet returned to the user."),
}
FETCHING = {
    **FETCHES,
    **LAG,
    **LEAD,
    "records-lead-min": MetricDescription(GAUGE, NONE, "The smallest lead of an assigned partition."),
    "records-lag-max": MetricDescription(GAUGE, NONE, "The largest lag of an assigned partition."),
}
SHARE_FETCHING = {
    **FETCHES,
    **describe_count("acknowledgements-send", "Acknowledgements sent, one for each record"),
    **describe_count("acknowledgements-error", "Acknowledgements that failed, one for each record"),
}
CONSUMER_CALLS = {
    "commit-sync": "Time that callers spent in commit",
    "committed": "Time that callers spent in committed",
}
SHARE_CALLS = {"commit-sync": CONSUMER_CALLS["commit-sync"]}
POLLING = {
    **describe_spread("time-between-poll", "Time between calls of poll; compare max.poll.interval.ms", MS),
    "poll-idle-ratio-avg": MetricDescription(
        GAUGE, RATIO, "The fraction of time spent in poll; near 0, processing is the bottleneck."
    ),
    "last-poll-seconds-ago": MetricDescription(GAUGE, SECONDS, "Seconds since poll was last called."),
}
CONSUMER = {**CLIENT, **describe_times(CONSUMER_CALLS), **POLLING}
SHARE_CONSUMER = {**CLIENT, **describe_times(SHARE_CALLS), **POLLING}
SHARE_COORDINATOR = {
    "assigned-partitions": MetricDescription(GAUGE, NONE, "Partitions assigned to this member."),
    **describe_count("heartbeat", "Heartbeats sent"),
    "heartbeat-response-time-max": MetricDescription(GAUGE, MS, "The longest time from a heartbeat to its response."),
    "last-heartbeat-seconds-ago": MetricDescription(
        GAUGE, SECONDS, "Seconds since the coordinator last responded to a heartbeat."
    ),
}
COORDINATOR = {
    **SHARE_COORDINATOR,
    **describe_count("join", "Generations joined"),
    **describe_spread("join-time", "Time from JoinGroup to its response", MS),
    **describe_count("sync", "Assignments received"),
    **describe_spread("sync-time", "Time from joining to receiving the assignment", MS),
    "rebalance-total": MetricDescription(COUNTER, NONE, "Rebalances completed."),
    "rebalance-rate-per-hour": MetricDescription(GAUGE, NONE, "Rebalances per hour, at the rate of the last windows."),
    "rebalance-latency-total": MetricDescription(COUNTER, MS, "Time spent in rebalances since the client started."),
    **describe_spread(
        "rebalance-latency", "Time from the start of a rebalance, as seen by this member, to its assignment", MS
    ),
    "failed-rebalance-total": MetricDescription(COUNTER, NONE, "Failed attempts to join."),
    "failed-rebalance-rate-per-hour": MetricDescription(
        GAUGE, NONE, "Failed attempts to join per hour, at the rate of the last windows."
    ),
    **describe_spread("partition-assigned-latency", "Duration of the on_assigned callback", MS),
    **describe_spread("partition-revoked-latency", "Duration of the on_revoked callback", MS),
    **describe_spread("partition-lost-latency", "Duration of the on_lost callback", MS),
    "last-rebalance-seconds-ago": MetricDescription(GAUGE, SECONDS, "Seconds since the last rebalance ended."),
    **describe_count("commit", "Offset commits completed"),
    **describe_spread("commit-latency", "Time from an offset commit to its response", MS),
}
GROUPS = {
    "producer-metrics": PRODUCER,
    "producer-topic-metrics": {**SENDING, **BY_TOPIC},
    "producer-node-metrics": TRAFFIC,
    "consumer-metrics": CONSUMER,
    "consumer-fetch-manager-metrics": FETCHING,
    "consumer-coordinator-metrics": COORDINATOR,
    "consumer-node-metrics": TRAFFIC,
    "consumer-share-metrics": SHARE_CONSUMER,
    "consumer-share-fetch-manager-metrics": SHARE_FETCHING,
    "consumer-share-coordinator-metrics": SHARE_COORDINATOR,
    "consumer-share-node-metrics": TRAFFIC,
    "admin-client-metrics": CLIENT,
    "admin-client-node-metrics": TRAFFIC,
}


def description_of(group: str, name: str) -> MetricDescription:
    """Return the description of a metric. Raises KeyError if the name is unknown."""
    return GROUPS[group][name]
