"""The table of topic configs: Kafka's names, defaults and bounds."""

from __future__ import annotations

import pytest

from ottla.coordination.cluster.topic_configs import SCHEMA_VALIDATION, find_conflict, find_fault, list_options

NAMES = """
cleanup.policy compression.gzip.level compression.lz4.level compression.type compression.zstd.level
delete.retention.ms errors.deadletterqueue.group.enable file.delete.delay.ms flush.messages flush.ms follower.replication.throttled.replicas
index.interval.bytes leader.replication.throttled.replicas local.retention.bytes local.retention.ms
max.compaction.lag.ms max.decompressed.message.bytes max.message.bytes message.timestamp.after.max.ms message.timestamp.before.max.ms
message.timestamp.type min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate
remote.copy.lag.bytes remote.copy.lag.ms remote.log.copy.disable remote.log.delete.on.disable remote.storage.enable retention.bytes retention.ms
segment.bytes segment.index.bytes segment.jitter.ms segment.ms unclean.leader.election.enable
"""
KAFKAS = NAMES.split()


def test_every_topic_config_of_kafka_is_there_and_two_of_schema_validation() -> None:
    assert sorted(list_options()) == sorted([*KAFKAS, *SCHEMA_VALIDATION.values()])


def test_every_config_is_explained() -> None:
    assert [name for name, option in list_options().items() if not option.doc] == []


@pytest.mark.parametrize("name", KAFKAS)
def test_a_default_is_a_value_that_may_be_set(name: str) -> None:
    default = list_options()[name].default
    assert find_fault(name, ",".join(default) if isinstance(default, tuple) else str(default)) is None


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("retention.mss", "1", "unknown topic config 'retention.mss'; did you mean 'retention.ms'?"),
        ("retention.ms", "soon", "retention.ms = 'soon': must be a whole number"),
        ("retention.ms", "-2", "retention.ms = -2: must be at least -1"),
        ("retention.ms", None, "retention.ms has no value"),
        ("preallocate", "maybe", "preallocate = 'maybe': must be true or false"),
        ("cleanup.policy", "compact,shred", "cleanup.policy = 'shred': must be one of delete, compact"),
        ("min.cleanable.dirty.ratio", "1.5", "min.cleanable.dirty.ratio = 1.5: must be at most 1"),
    ],
)
def test_a_fault_is_one_sentence(name: str, value: str | None, sentence: str) -> None:
    assert find_fault(name, value) == sentence


def test_lags_of_compaction_have_to_agree() -> None:
    assert find_conflict({}) is None
    assert find_conflict({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "5"}) is None
    fault = find_conflict({"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"})
    assert fault == "min.compaction.lag.ms = 6: must be at most max.compaction.lag.ms = 5"
