"""Settings of Kafka's broker that have another name or no effect in this one.

With them a `server.properties` that was written for Kafka starts a broker here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ottla.errors import ConfigError

HOUR_MS, MINUTE_MS = 3_600_000, 60_000


class Alias(NamedTuple):
    """Another name of a setting, in another unit."""

    name: str
    factor: int = 1
    """The factor for a number; a negative number becomes -1, for unlimited."""


ALIASES: Mapping[str, Alias] = {
    "log.retention.hours": Alias("log.retention.ms", HOUR_MS),
    "log.retention.minutes": Alias("log.retention.ms", MINUTE_MS),
    "log.roll.hours": Alias("log.roll.ms", HOUR_MS),
    "log.dir": Alias("log.dirs"),
    "broker.id": Alias("node.id"),
    "delegation.token.master.key": Alias("delegation.token.secret.key"),
}
"""Other names of settings. Of two names in one place the later in this table counts, and the setting's own name before
both.
"""

FOR_A_CLUSTER = frozenset(
    [
        "auto.leader.rebalance.enable",
        "broker.heartbeat.interval.ms",
        "broker.rack",
        "broker.session.timeout.ms",
        "controller.quorum.auto.join.enable",
        "controller.quorum.bootstrap.servers",
        "controller.quorum.election.backoff.max.ms",
        "controller.quorum.election.timeout.ms",
        "controller.quorum.fetch.timeout.ms",
        "controller.quorum.request.timeout.ms",
        "controller.quorum.retry.backoff.ms",
        "controller.quorum.voters",
        "cordoned.log.dirs",
        "initial.broker.registration.timeout.ms",
        "leader.imbalance.check.interval.seconds",
        "log.dir.failure.timeout.ms",
        "metadata.log.max.snapshot.interval.ms",
        "metadata.max.idle.interval.ms",
        "metadata.max.retention.bytes",
        "metadata.max.retention.ms",
        "offsets.topic.replication.factor",
        "process.roles",
        "replica.selector.class",
        "transaction.state.log.min.isr",
        "transaction.state.log.replication.factor",
    ]
)
"""Settings of this broker without effect on a node without other controllers."""

WITHOUT_EFFECT = frozenset(
    [
        "add.partitions.to.txn.retry.backoff.max.ms",
        "add.partitions.to.txn.retry.backoff.ms",
        "alter.config.policy.class.name",
        "alter.log.dirs.replication.quota.window.num",
        "alter.log.dirs.replication.quota.window.size.seconds",
        "auto.include.jmx.reporter",
        "background.threads",
        "broker.id.generation.enable",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "controlled.shutdown.enable",
        "controlled.shutdown.max.retries",
        "controlled.shutdown.retry.backoff.ms",
        "create.topic.policy.class.name",
        "delete.records.purgatory.purge.interval.requests",
        "early.start.listeners",
        "eligible.leader.replicas.enable",
        "fetch.purgatory.purge.interval.requests",
        "follower.fetch.last.tiered.offset.enable",
        "internal.metadata.delete.delay.millis",
        "internal.metadata.log.segment.bytes",
        "internal.metadata.max.batch.size.in.bytes",
        "log.flush.scheduler.interval.ms",
        "log.flush.start.offset.checkpoint.interval.ms",
        "log.initial.task.delay.ms",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "log.message.downconversion.enable",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.preallocate",
        "log.roll.jitter.hours",
        "log.roll.jitter.ms",
        "log.segment.delete.delay.ms",
        "max.connection.creation.rate",
        "max.incremental.fetch.session.cache.slots",
        "max.request.partition.size.limit",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.alter.log.dirs.threads",
        "num.replica.fetchers",
        "producer.id.expiration.check.interval.ms",
        "producer.id.expiration.ms",
        "producer.purgatory.purge.interval.requests",
        "queued.max.requests",
        "replication.quota.window.num",
        "replication.quota.window.size.seconds",
        "request.timeout.ms",
        "reserved.broker.max.id",
        "security.providers",
        "server.max.startup.time.ms",
        "socket.connection.setup.timeout.max.ms",
        "socket.connection.setup.timeout.ms",
        "socket.listen.backlog.size",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "unclean.leader.election.enable",
        "unclean.leader.election.interval.ms",
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
    ]
)
"""Kafka's settings without effect here, and settings with names similar to this broker's."""
FAMILIES = (
    "client.quota.",
    "confluent.",
    "controller.",
    "delegation.token.",
    "group.",
    "inter.broker.",
    "kafka.metrics.",
    "leader.imbalance.",
    "log.cleaner.",
    "metadata.log.",
    "metric.reporters",
    "metrics.",
    "offsets.",
    "password.encoder.",
    "principal.builder.",
    "quota.",
    "remote.",
    "replica.",
    "sasl.",
    "share.",
    "ssl.",
    "telemetry.",
    "transaction.",
    "transactional.id.",
    "zookeeper.",
)
"""The prefixes of families of such settings."""


def has_no_effect(name: str) -> bool:
    """Return True if the setting is Kafka's and has no effect here. Look for the broker's own settings first."""
    return name in WITHOUT_EFFECT or name.startswith(FAMILIES)


def in_our_unit(name: str, value: str, alias: Alias) -> str:
    """Return the value in the unit of the setting's own name."""
    if alias.factor == 1:
        return value
    try:
        number = int(value)
    except ValueError:
        raise ConfigError(f"{name} = {value!r}: must be a whole number") from None
    return str(number * alias.factor if number >= 0 else -1)
