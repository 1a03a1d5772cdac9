"""Configs of brokers and groups that Apache Kafka 4.4 has and that have no effect here. They are listed with Kafka's defaults.

Tools and test suites compare the names. Kafka changes some of them at run time; such a change is stored and listed here, without
effect. An unknown name is stored as a custom config, as Kafka does for plug-ins. `ottla configs alter` rejects unknown names,
since they are probably misspelt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ottla.broker.settings.kafka_settings import ALIASES
from ottla.broker.settings.listener_settings import PREFIX, parse_name
from ottla.config import Option

BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = range(1, 10)
"""Types of values, by their numbers in the protocol."""
TYPES: Mapping[int, Any] = {BOOLEAN: bool, INT: int, SHORT: int, LONG: int, DOUBLE: float, LIST: tuple[str, ...]}


class ForeignConfig(NamedTuple):
    """A config as Kafka declares it."""

    kind: int
    default: str | None
    is_dynamic: bool = False
    """True if Kafka changes it at run time."""


OF_BROKERS: Mapping[str, ForeignConfig] = {
    "broker.id": ForeignConfig(INT, "-1"),
    "log.dir": ForeignConfig(LIST, "/tmp/kafka-logs"),
    "log.retention.hours": ForeignConfig(INT, "168"),
    "log.retention.minutes": ForeignConfig(INT, None),
    "log.roll.hours": ForeignConfig(INT, "168"),
    "add.partitions.to.txn.retry.backoff.max.ms": ForeignConfig(INT, "100"),
    "add.partitions.to.txn.retry.backoff.ms": ForeignConfig(INT, "20"),
    "alter.config.policy.class.name": ForeignConfig(CLASS, None),
    "alter.log.dirs.replication.quota.window.num": ForeignConfig(INT, "11"),
    "alter.log.dirs.replication.quota.window.size.seconds": ForeignConfig(INT, "1"),
    "background.threads": ForeignConfig(INT, "10", is_dynamic=True),
    "client.quota.callback.class": ForeignConfig(CLASS, None),
    "config.providers": ForeignConfig(LIST, "", is_dynamic=True),
    "controlled.shutdown.enable": ForeignConfig(BOOLEAN, "true"),
    "controller.quorum.append.linger.ms": ForeignConfig(INT, "25"),
    "controller.quorum.fetch.max.bytes": ForeignConfig(INT, "1048576"),
    "controller.quorum.fetch.snapshot.max.bytes": ForeignConfig(INT, "1048576"),
    "controller.quota.window.num": ForeignConfig(INT, "11"),
    "controller.quota.window.size.seconds": ForeignConfig(INT, "1"),
    "controller.socket.timeout.ms": ForeignConfig(INT, "30000"),
    "create.topic.policy.class.name": ForeignConfig(CLASS, None),
    "delete.records.purgatory.purge.interval.requests": ForeignConfig(INT, "1"),
    "early.start.listeners": ForeignConfig(LIST, None),
    "fetch.purgatory.purge.interval.requests": ForeignConfig(INT, "1000"),
    "follower.fetch.last.tiered.offset.enable": ForeignConfig(BOOLEAN, "false", is_dynamic=True),
    "group.consumer.assignment.interval.ms": ForeignConfig(INT, "1000", is_dynamic=True),
    "group.consumer.max.assignment.interval.ms": ForeignConfig(INT, "15000"),
    "group.consumer.min.assignment.interval.ms": ForeignConfig(INT, "0"),
    "group.coordinator.append.linger.ms": ForeignConfig(INT, "-1"),
    "group.coordinator.background.threads": ForeignConfig(INT, "2"),
    "group.coordinator.cached.buffer.max.bytes": ForeignConfig(INT, "1048588", is_dynamic=True),
    "group.coordinator.rebalance.protocols": ForeignConfig(LIST, "classic,consumer,streams"),
    "group.coordinator.threads": ForeignConfig(INT, "4"),
    "group.share.assignment.interval.ms": ForeignConfig(INT, "1000", is_dynamic=True),
    "group.share.assignors": ForeignConfig(LIST, "simple"),
    "group.share.max.assignment.interval.ms": ForeignConfig(INT, "15000"),
    "group.share.min.assignment.interval.ms": ForeignConfig(INT, "0"),
    "group.streams.assignors": ForeignConfig(LIST, "sticky"),
    "kafka.metrics.polling.interval.secs": ForeignConfig(INT, "10"),
    "kafka.metrics.reporters": ForeignConfig(LIST, ""),
    "log.cleaner.io.buffer.load.factor": ForeignConfig(DOUBLE, "0.9", is_dynamic=True),
    "log.cleaner.io.buffer.size": ForeignConfig(INT, "524288", is_dynamic=True),
    "log.cleaner.io.max.bytes.per.second": ForeignConfig(DOUBLE, "1.7976931348623157E308", is_dynamic=True),
    "log.cleaner.threads": ForeignConfig(INT, "1", is_dynamic=True),
    "log.flush.scheduler.interval.ms": ForeignConfig(LONG, "9223372036854775807"),
    "log.flush.start.offset.checkpoint.interval.ms": ForeignConfig(INT, "60000"),
    "log.local.retention.bytes": ForeignConfig(LONG, "-2", is_dynamic=True),
    "log.local.retention.ms": ForeignConfig(LONG, "-2", is_dynamic=True),
    "log.preallocate": ForeignConfig(BOOLEAN, "false", is_dynamic=True),
    "log.remote.copy.lag.bytes": ForeignConfig(LONG, "-1", is_dynamic=True),
    "log.remote.copy.lag.ms": ForeignConfig(LONG, "0", is_dynamic=True),
    "log.roll.jitter.hours": ForeignConfig(INT, "0"),
    "log.roll.jitter.ms": ForeignConfig(LONG, None, is_dynamic=True),
    "log.segment.delete.delay.ms": ForeignConfig(LONG, "60000", is_dynamic=True),
    "max.connection.creation.rate": ForeignConfig(INT, "2147483647", is_dynamic=True),
    "max.request.partition.size.limit": ForeignConfig(INT, "2000"),
    "metadata.log.segment.bytes": ForeignConfig(INT, "1073741824"),
    "metadata.log.segment.ms": ForeignConfig(LONG, "604800000"),
    "metric.reporters": ForeignConfig(LIST, "org.apache.kafka.common.metrics.JmxReporter", is_dynamic=True),
    "metrics.num.samples": ForeignConfig(INT, "2"),
    "metrics.recording.level": ForeignConfig(STRING, "INFO"),
    "metrics.sample.window.ms": ForeignConfig(LONG, "30000"),
    "num.io.threads": ForeignConfig(INT, "8", is_dynamic=True),
    "num.network.threads": ForeignConfig(INT, "3", is_dynamic=True),
    "num.recovery.threads.per.data.dir": ForeignConfig(INT, "2", is_dynamic=True),
    "num.replica.alter.log.dirs.threads": ForeignConfig(INT, None),
    "num.replica.fetchers": ForeignConfig(INT, "1", is_dynamic=True),
    "offsets.commit.timeout.ms": ForeignConfig(INT, "5000"),
    "offsets.load.buffer.size": ForeignConfig(INT, "5242880"),
    "offsets.topic.compression.codec": ForeignConfig(INT, "0"),
    "principal.builder.class": ForeignConfig(
        CLASS, "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", is_dynamic=True
    ),
    "producer.purgatory.purge.interval.requests": ForeignConfig(INT, "1000"),
    "queued.max.requests": ForeignConfig(INT, "500"),
    "remote.fetch.max.wait.ms": ForeignConfig(INT, "500", is_dynamic=True),
    "remote.list.offsets.request.timeout.ms": ForeignConfig(LONG, "30000", is_dynamic=True),
    "remote.log.index.file.cache.total.size.bytes": ForeignConfig(LONG, "1073741824", is_dynamic=True),
    "remote.log.manager.copier.thread.pool.size": ForeignConfig(INT, "10", is_dynamic=True),
    "remote.log.manager.copy.max.bytes.per.second": ForeignConfig(LONG, "9223372036854775807", is_dynamic=True),
    "remote.log.manager.copy.quota.window.num": ForeignConfig(INT, "11"),
    "remote.log.manager.copy.quota.window.size.seconds": ForeignConfig(INT, "1"),
    "remote.log.manager.expiration.thread.pool.size": ForeignConfig(INT, "10", is_dynamic=True),
    "remote.log.manager.fetch.max.bytes.per.second": ForeignConfig(LONG, "9223372036854775807", is_dynamic=True),
    "remote.log.manager.fetch.quota.window.num": ForeignConfig(INT, "11"),
    "remote.log.manager.fetch.quota.window.size.seconds": ForeignConfig(INT, "1"),
    "remote.log.manager.follower.thread.pool.size": ForeignConfig(INT, "2", is_dynamic=True),
    "remote.log.manager.task.interval.ms": ForeignConfig(LONG, "30000"),
    "remote.log.manager.thread.pool.size": ForeignConfig(INT, "2"),
    "remote.log.metadata.custom.metadata.max.bytes": ForeignConfig(INT, "128"),
    "remote.log.metadata.manager.class.name": ForeignConfig(
        STRING, "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager"
    ),
    "remote.log.metadata.manager.class.path": ForeignConfig(STRING, None),
    "remote.log.metadata.manager.impl.prefix": ForeignConfig(STRING, "rlmm.config."),
    "remote.log.metadata.manager.listener.name": ForeignConfig(STRING, None),
    "remote.log.reader.max.pending.tasks": ForeignConfig(INT, "100"),
    "remote.log.reader.threads": ForeignConfig(INT, "10", is_dynamic=True),
    "remote.log.storage.manager.class.name": ForeignConfig(STRING, None),
    "remote.log.storage.manager.class.path": ForeignConfig(STRING, None),
    "remote.log.storage.manager.impl.prefix": ForeignConfig(STRING, "rsm.config."),
    "remote.log.storage.system.enable": ForeignConfig(BOOLEAN, "false"),
    "replica.fetch.backoff.ms": ForeignConfig(INT, "1000"),
    "replica.fetch.max.bytes": ForeignConfig(INT, "1048576"),
    "replica.fetch.min.bytes": ForeignConfig(INT, "1"),
    "replica.fetch.response.max.bytes": ForeignConfig(INT, "10485760"),
    "replica.fetch.wait.max.ms": ForeignConfig(INT, "500"),
    "replica.socket.receive.buffer.bytes": ForeignConfig(INT, "65536"),
    "replica.socket.timeout.ms": ForeignConfig(INT, "30000"),
    "replication.quota.window.num": ForeignConfig(INT, "11"),
    "replication.quota.window.size.seconds": ForeignConfig(INT, "1"),
    "request.timeout.ms": ForeignConfig(INT, "30000"),
    "sasl.client.callback.handler.class": ForeignConfig(CLASS, None),
    "sasl.kerberos.kinit.cmd": ForeignConfig(STRING, "/usr/bin/kinit", is_dynamic=True),
    "sasl.kerberos.ticket.renew.jitter": ForeignConfig(DOUBLE, "0.05", is_dynamic=True),
    "sasl.kerberos.ticket.renew.window.factor": ForeignConfig(DOUBLE, "0.8", is_dynamic=True),
    "sasl.login.callback.handler.class": ForeignConfig(CLASS, None),
    "sasl.login.class": ForeignConfig(CLASS, None),
    "sasl.login.connect.timeout.ms": ForeignConfig(INT, None),
    "sasl.login.read.timeout.ms": ForeignConfig(INT, None),
    "sasl.login.refresh.buffer.seconds": ForeignConfig(SHORT, "300", is_dynamic=True),
    "sasl.login.refresh.min.period.seconds": ForeignConfig(SHORT, "60", is_dynamic=True),
    "sasl.login.refresh.window.factor": ForeignConfig(DOUBLE, "0.8", is_dynamic=True),
    "sasl.login.refresh.window.jitter": ForeignConfig(DOUBLE, "0.05", is_dynamic=True),
    "sasl.login.retry.backoff.max.ms": ForeignConfig(LONG, "10000"),
    "sasl.login.retry.backoff.ms": ForeignConfig(LONG, "100"),
    "sasl.oauthbearer.assertion.algorithm": ForeignConfig(STRING, "RS256"),
    "sasl.oauthbearer.assertion.claim.aud": ForeignConfig(STRING, None),
    "sasl.oauthbearer.assertion.claim.exp.seconds": ForeignConfig(INT, "300"),
    "sasl.oauthbearer.assertion.claim.iss": ForeignConfig(STRING, None),
    "sasl.oauthbearer.assertion.claim.jti.include": ForeignConfig(BOOLEAN, "false"),
    "sasl.oauthbearer.assertion.claim.nbf.seconds": ForeignConfig(INT, "60"),
    "sasl.oauthbearer.assertion.claim.sub": ForeignConfig(STRING, None),
    "sasl.oauthbearer.assertion.file": ForeignConfig(STRING, None),
    "sasl.oauthbearer.assertion.private.key.file": ForeignConfig(STRING, None),
    "sasl.oauthbearer.assertion.private.key.passphrase": ForeignConfig(PASSWORD, None),
    "sasl.oauthbearer.assertion.template.file": ForeignConfig(STRING, None),
    "sasl.oauthbearer.client.credentials.client.id": ForeignConfig(STRING, None),
    "sasl.oauthbearer.client.credentials.client.secret": ForeignConfig(PASSWORD, None),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": ForeignConfig(LONG, "10000"),
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": ForeignConfig(LONG, "100"),
    "sasl.oauthbearer.jwt.retriever.class": ForeignConfig(
        CLASS, "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"
    ),
    "sasl.oauthbearer.jwt.validator.class": ForeignConfig(
        CLASS, "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"
    ),
    "sasl.oauthbearer.scope": ForeignConfig(STRING, None),
    "sasl.oauthbearer.token.endpoint.url": ForeignConfig(STRING, None),
    "sasl.server.callback.handler.class": ForeignConfig(CLASS, None),
    "security.providers": ForeignConfig(STRING, None),
    "share.coordinator.append.linger.ms": ForeignConfig(INT, "-1"),
    "share.coordinator.cached.buffer.max.bytes": ForeignConfig(INT, "1048588", is_dynamic=True),
    "share.coordinator.load.buffer.size": ForeignConfig(INT, "5242880"),
    "share.coordinator.state.topic.compression.codec": ForeignConfig(INT, "0"),
    "share.coordinator.threads": ForeignConfig(INT, "1"),
    "share.coordinator.write.timeout.ms": ForeignConfig(INT, "5000"),
    "share.fetch.purgatory.purge.interval.requests": ForeignConfig(INT, "1000"),
    "socket.connection.setup.timeout.max.ms": ForeignConfig(LONG, "30000"),
    "socket.connection.setup.timeout.ms": ForeignConfig(LONG, "10000"),
    "socket.listen.backlog.size": ForeignConfig(INT, "50"),
    "socket.receive.buffer.bytes": ForeignConfig(INT, "102400"),
    "socket.send.buffer.bytes": ForeignConfig(INT, "102400"),
    "ssl.allow.dn.changes": ForeignConfig(BOOLEAN, "false"),
    "ssl.allow.san.changes": ForeignConfig(BOOLEAN, "false"),
    "ssl.engine.factory.class": ForeignConfig(CLASS, None, is_dynamic=True),
    "ssl.keymanager.algorithm": ForeignConfig(STRING, "SunX509", is_dynamic=True),
    "ssl.protocol": ForeignConfig(STRING, "TLSv1.3", is_dynamic=True),
    "ssl.provider": ForeignConfig(STRING, None, is_dynamic=True),
    "ssl.secure.random.implementation": ForeignConfig(STRING, None, is_dynamic=True),
    "ssl.trustmanager.algorithm": ForeignConfig(STRING, "PKIX", is_dynamic=True),
    "transaction.remove.expired.transaction.cleanup.interval.ms": ForeignConfig(INT, "3600000"),
    "transaction.state.log.load.buffer.size": ForeignConfig(INT, "5242880"),
    "transaction.two.phase.commit.enable": ForeignConfig(BOOLEAN, "false"),
    "unclean.leader.election.enable": ForeignConfig(BOOLEAN, "false", is_dynamic=True),
}
OF_GROUPS: Mapping[str, ForeignConfig] = {
    "consumer.assignment.interval.ms": ForeignConfig(INT, "1000", is_dynamic=True),
    "share.assignment.interval.ms": ForeignConfig(INT, "1000", is_dynamic=True),
    "streams.assignor.name": ForeignConfig(STRING, "sticky", is_dynamic=True),
}


def list_kept_options(names: Iterable[str], known: Iterable[str]) -> dict[str, Option]:
    """Return options for those of `names` that are stored without effect; `known` are our own settings."""
    ours = {*known, *ALIASES}

    def is_kept(name: str) -> bool:
        if name in OF_BROKERS:
            return OF_BROKERS[name].is_dynamic
        if name.startswith(PREFIX):
            setting = parse_name(name)
            return setting is not None and setting.name not in ours and setting.name not in OF_BROKERS
        return name not in ours

    return {name: make_option(name) for name in names if is_kept(name)}


def make_option(name: str) -> Option:
    found = OF_BROKERS.get(name)
    kind, default = (str, None) if found is None else (TYPES.get(found.kind, str), found.default)
    return Option(name.replace(".", "_"), name, kind, default, ForeignConfig)
