"""Every number of `metrics()`: of what kind it is, in which unit, and what it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

COUNTER, GAUGE = "counter", "gauge"
NS, MS, SECONDS, BYTES, RATIO, NONE = "ns", "ms", "seconds", "bytes", "ratio", ""


class Description(NamedTuple):
    kind: str
    unit: str
    text: str


def counted(name: str, what: str, unit: str = NONE) -> dict[str, Description]:
    """`name-total` and `name-rate`."""
    return {
        f"{name}-total": Description(COUNTER, unit, f"{what}, since the client began."),
        f"{name}-rate": Description(GAUGE, unit, f"{what}, in a second."),
    }


def spread(name: str, what: str, unit: str) -> dict[str, Description]:
    """`name-avg` and `name-max`."""
    return {
        f"{name}-avg": Description(GAUGE, unit, f"{what}: the average."),
        f"{name}-max": Description(GAUGE, unit, f"{what}: the most."),
    }


def times(kinds: Mapping[str, str]) -> dict[str, Description]:
    """`kind-time-ns-total` of each."""
    return {f"{kind}-time-ns-total": Description(COUNTER, NS, f"{what}.") for kind, what in kinds.items()}


TRAFFIC = {
    **counted("request", "Requests sent"),
    **spread("request-size", "Bytes of a request", BYTES),
    **counted("outgoing-byte", "Bytes sent", BYTES),
    **counted("response", "Answers received"),
    **counted("incoming-byte", "Bytes received", BYTES),
    **spread("request-latency", "From sending a request to its answer, what a fetch waits for records included", MS),
}
CLIENT = {
    **TRAFFIC,
    "connection-count": Description(GAUGE, NONE, "Connections that may be used now."),
    **counted("connection-creation", "Connections opened"),
    **counted("connection-close", "Connections ended, by whichever side"),
    **counted("successful-authentication", "Connections whose login was taken, with SSL alone the handshake"),
    **counted("failed-authentication", "Connections whose login or handshake was refused"),
    **counted("successful-reauthentication", "Logins by which a session goes on"),
    **counted("failed-reauthentication", "Logins again that were refused"),
    **spread("reauthentication-latency", "From the beginning of a login again to its end", MS),
    "requests-in-flight": Description(GAUGE, NONE, "Requests without an answer so far."),
    "metadata-age": Description(GAUGE, SECONDS, "Seconds since brokers, topics and leaders were last told of."),
}
SENDING = {
    **counted("record-send", "Records sent; those of a batch that is sent again count again"),
    **counted("byte", "Bytes of batches sent, as they travel", BYTES),
    **counted("record-retry", "Records that were to be sent again"),
    **counted("record-error", "Records that failed"),
}
PRODUCER_CALLS = {
    "flush": "Time that callers spent in flush",
    "metadata-wait": "Time that callers waited to be told of a topic",
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
    **times(PRODUCER_CALLS),
    "bufferpool-wait-ratio": Description(
        GAUGE, RATIO, "The part of the time that callers wait for memory; above 1 where several do."
    ),
    **counted("buffer-exhausted", "Records that found no memory within max.block.ms"),
    **spread("produce-throttle-time", "How long the broker had us wait, for a quota", MS),
    "compression-rate-avg": Description(GAUGE, RATIO, "Bytes of a batch as it travels, to those before compression."),
    **spread("batch-size", "Bytes of a batch, as it travels", BYTES),
    **spread("record-queue-time", "How long a batch was gathered and waited before it was sent", MS),
    "records-per-request-avg": Description(GAUGE, NONE, "Records of a request, on average."),
    **counted("batch-split", "Batches that the broker found too large, sent again as two"),
    "buffer-total-bytes": Description(GAUGE, BYTES, "Memory for what is not delivered: buffer.memory."),
    "buffer-available-bytes": Description(GAUGE, BYTES, "What of that is not in use."),
    "waiting-threads": Description(GAUGE, NONE, "Calls of send that wait for memory."),
}
BY_TOPIC = {
    "compression-rate": Description(GAUGE, RATIO, "The same ratio of a topic's batches, on average."),
}
CONSUMED = {
    **counted("records-consumed", "Records handed out"),
    **counted("bytes-consumed", "Bytes of them, as they were fetched", BYTES),
}
LAG = {
    "records-lag": Description(
        GAUGE, NONE, "Offsets between the position and the end of the partition, as last heard of."
    ),
}
LEAD = {
    "records-lead": Description(
        GAUGE,
        NONE,
        "Offsets between the beginning of the partition, as last heard of, and the position: near 0, retention is about to overtake.",
    ),
    "preferred-read-replica": Description(
        GAUGE, NONE, "The replica that is read instead of the leader, -1 for the leader."
    ),
}
FETCHING = {
    **CONSUMED,
    **LAG,
    **LEAD,
    **counted("fetch", "Fetches answered"),
    "records-per-request-avg": Description(GAUGE, NONE, "Records handed out for each answer that had any, on average."),
    **spread("fetch-throttle-time", "How long the broker had us wait, for a quota", MS),
    **spread("fetch-latency", "From asking for records to the answer, which the broker may hold back", MS),
    **spread("fetch-size", "Bytes of records in an answer", BYTES),
    "records-lead-min": Description(GAUGE, NONE, "The least that any assigned partition leads now."),
    "records-lag-max": Description(GAUGE, NONE, "The most that any assigned partition lags now."),
    "buffered-bytes": Description(GAUGE, BYTES, "Fetched and not handed out."),
}
CONSUMER_CALLS = {
    "commit-sync": "Time that callers spent in commit",
    "committed": "Time that callers spent in committed",
}
CONSUMER = {
    **CLIENT,
    **times(CONSUMER_CALLS),
    **spread("time-between-poll", "From one call of poll to the next; compare max.poll.interval.ms", MS),
    "poll-idle-ratio-avg": Description(
        GAUGE, RATIO, "The part of the time that is spent in poll: near 0, the program is the limit."
    ),
    "last-poll-seconds-ago": Description(GAUGE, SECONDS, "Seconds since poll was last called."),
}
COORDINATOR = {
    "assigned-partitions": Description(GAUGE, NONE, "Partitions that this member has."),
    **counted("heartbeat", "Heartbeats sent"),
    "heartbeat-response-time-max": Description(GAUGE, MS, "From a heartbeat to its answer: the most."),
    "last-heartbeat-seconds-ago": Description(
        GAUGE, SECONDS, "Seconds since the coordinator last answered a heartbeat."
    ),
    **counted("join", "Times that this member was let into a generation"),
    **spread("join-time", "From asking to join until all members were there", MS),
    **counted("sync", "Assignments received"),
    **spread("sync-time", "From having joined to the assignment", MS),
    "rebalance-total": Description(COUNTER, NONE, "Rebalances that this member went through."),
    "rebalance-rate-per-hour": Description(GAUGE, NONE, "Rebalances in an hour, at the rate of the last windows."),
    "rebalance-latency-total": Description(COUNTER, MS, "Time in rebalances, since the client began."),
    **spread("rebalance-latency", "From the beginning of a rebalance, as this member knows it, to its assignment", MS),
    "failed-rebalance-total": Description(COUNTER, NONE, "Times that joining came to nothing."),
    "failed-rebalance-rate-per-hour": Description(GAUGE, NONE, "The same in an hour, at the rate of the last windows."),
    **spread("partition-assigned-latency", "How long the listener took that hears of new partitions", MS),
    **spread("partition-revoked-latency", "How long the listener took that hears of partitions to be given up", MS),
    **spread("partition-lost-latency", "How long the listener took that hears of partitions that are gone", MS),
    "last-rebalance-seconds-ago": Description(GAUGE, SECONDS, "Seconds since the last rebalance was over."),
    **counted("commit", "Commits of offsets that were answered"),
    **spread("commit-latency", "From a commit to its answer", MS),
}
GROUPS = {
    "producer-metrics": PRODUCER,
    "producer-topic-metrics": {**SENDING, **BY_TOPIC},
    "producer-node-metrics": TRAFFIC,
    "consumer-metrics": CONSUMER,
    "consumer-fetch-manager-metrics": FETCHING,
    "consumer-coordinator-metrics": COORDINATOR,
    "consumer-node-metrics": TRAFFIC,
    "admin-client-metrics": CLIENT,
    "admin-client-node-metrics": TRAFFIC,
}


def description_of(group: str, name: str) -> Description:
    """KeyError for what there is not."""
    return GROUPS[group][name]
