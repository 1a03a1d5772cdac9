"""`kafka-configs --describe --all` describes common configs equally at our broker and at Apache Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from interop.conftest import NewTopicName
from ottla.broker.settings.sources import read_sources
from ottla.errors import ConfigError
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from tests.broker.wire import Wire
from tests.patience import eventually

TOPIC, BROKER, GROUP = 2, 4, 32
OURS_ALONE = {
    *(
        "add.scram",
        "https.ca.location",
        "metrics.listen",
        "request.log",
        "schema.registry.basic.auth.user.info",
        "schema.registry.ssl.truststore.location",
        "schema.registry.url",
        "sasl.oauthbearer.jwks.file",
        "slow.request.ms",
        "trace.folder",
    ),
    *("audit.log", "audit.log.denied.only", "audit.log.max.bytes"),
    *("allow.everyone.if.no.acl.found", "super.users"),  # which Kafka leaves to its authorizer, and does not describe
}
"""Settings that Kafka does not have, or does not describe."""
ADDRESSES = "what a broker listens on is its own"
ALONE = "a lone node of Kafka's has to be told 1"
STATIC = "Kafka changes it while it runs, we when we start"
FOR_A_LISTENER = "we change it while we run for a listener by its name alone, Kafka for all as well"
DIFFERENT: dict[str, tuple[set[str], str]] = {
    "advertised.listeners": ({"value"}, "we tell what is in force, Kafka what was set, which is nothing"),
    "controller.listener.names": ({"value", "source", "synonyms"}, "we have no listener for controllers"),
    "controller.quorum.bootstrap.servers": (
        {"type", "value", "source", "synonyms"},
        "ours is one text, empty for a lone node",
    ),
    "listener.security.protocol.map": ({"value", "read_only", "synonyms"}, STATIC),
    "offsets.topic.replication.factor": ({"value", "source", "synonyms"}, ALONE),
    "share.coordinator.state.topic.min.isr": ({"value", "source", "synonyms"}, ALONE),
    "share.coordinator.state.topic.replication.factor": ({"value", "source", "synonyms"}, ALONE),
    "transaction.state.log.min.isr": ({"value", "source", "synonyms"}, ALONE),
    "transaction.state.log.replication.factor": ({"value", "source", "synonyms"}, ALONE),
    "listeners": ({"value", "read_only", "synonyms"}, STATIC),
    "log.cleaner.dedupe.buffer.size": ({"value", "synonyms"}, "ours grows as it is used, so it may be smaller"),
    "log.dirs": ({"value", "synonyms"}, ADDRESSES),
    "max.connections.per.ip.overrides": ({"read_only"}, STATIC),
    "metadata.log.dir": ({"value", "synonyms"}, ADDRESSES),
    "process.roles": ({"value", "source", "synonyms"}, "a lone node here needs not be told its roles"),
    "sasl.enabled.mechanisms": ({"value", "read_only", "synonyms"}, "ours is what needs no KDC, Kafka's is GSSAPI"),
    "sasl.jaas.config": ({"read_only"}, STATIC),
    "sasl.kerberos.principal.to.local.rules": ({"read_only"}, STATIC),
    "sasl.kerberos.service.name": ({"read_only"}, STATIC),
    "sasl.mechanism.inter.broker.protocol": ({"read_only"}, STATIC),
    "ssl.cipher.suites": ({"read_only"}, STATIC),
    "ssl.client.auth": ({"read_only"}, STATIC),
    "ssl.enabled.protocols": ({"read_only"}, STATIC),
    "ssl.endpoint.identification.algorithm": ({"read_only"}, STATIC),
    "ssl.key.password": ({"read_only"}, FOR_A_LISTENER),
    "ssl.keystore.certificate.chain": ({"read_only"}, FOR_A_LISTENER),
    "ssl.keystore.key": ({"read_only"}, FOR_A_LISTENER),
    "ssl.keystore.location": ({"read_only"}, FOR_A_LISTENER),
    "ssl.keystore.password": ({"read_only"}, FOR_A_LISTENER),
    "ssl.keystore.type": ({"value", "read_only", "synonyms"}, "ours is what the file begins like"),
    "ssl.truststore.certificates": ({"read_only"}, FOR_A_LISTENER),
    "ssl.truststore.location": ({"read_only"}, FOR_A_LISTENER),
    "ssl.truststore.password": ({"read_only"}, FOR_A_LISTENER),
    "ssl.truststore.type": ({"value", "read_only", "synonyms"}, "ours is what the file begins like"),
    "queued.max.request.bytes": ({"value", "synonyms"}, "ours is bounded by default"),
}
"""The differing fields of configs that both brokers have, with the reason."""
NOT_CHANGED = {"read_only"}, "an assignment is computed at once here, so its interval cannot be set"
OF_GROUPS: dict[str, tuple[set[str], str]] = {
    "consumer.assignment.interval.ms": NOT_CHANGED,
    "share.assignment.interval.ms": NOT_CHANGED,
    "streams.assignor.name": ({"read_only", "synonyms"}, "there is one assignor here"),
}
"""The differing fields of group configs, with the reason."""
DEFAULTS_OF_A_PROGRAM = (
    "group.consumer.heartbeat.interval.ms",
    "group.consumer.min.heartbeat.interval.ms",
    "group.consumer.min.session.timeout.ms",
)
"""Settings with other defaults in an embedded broker than in a standalone one."""


class ConfigDescription(NamedTuple):
    """The description of one config."""

    value: str | None
    source: int
    read_only: bool
    is_sensitive: bool
    type: int
    synonyms: list[tuple[str, str | None, int]]


def described(address: str, kind: int, name: str) -> dict[str, ConfigDescription]:
    """Describe all configs of a topic or broker. Waits until Kafka's broker has applied the creation of a new topic."""
    wanted = DescribeConfigsRequest([DescribeConfigsResource(kind, name, None)], include_synonyms=True)
    with Wire(address) as wire:
        eventually(lambda: wire.ask(wanted, 4).results[0].error_code == 0)
        (result,) = wire.ask(wanted, 4).results
    return {
        each.name: ConfigDescription(
            each.value,
            each.config_source,
            each.read_only,
            each.is_sensitive,
            each.config_type,
            [(synonym.name, synonym.value, synonym.source) for synonym in each.synonyms],
        )
        for each in result.configs
    }


def differences(ours: dict[str, ConfigDescription], theirs: dict[str, ConfigDescription]) -> dict[str, set[str]]:
    """Return the differing fields by config name."""
    found = {
        name: {
            field for field in ConfigDescription._fields if getattr(ours[name], field) != getattr(theirs[name], field)
        }
        for name in ours.keys() & theirs.keys()
    }
    return {name: fields for name, fields in found.items() if fields}


def test_topic_configs_are_described_as_by_kafka(
    ottla_broker: str, apache_kafka: str, fresh_topic: NewTopicName
) -> None:
    ours, theirs = (described(at, TOPIC, fresh_topic(at)) for at in (ottla_broker, apache_kafka))
    assert ours.keys() == theirs.keys()
    assert differences(ours, theirs) == {}


def test_group_configs_are_described_as_by_kafka(ottla_broker: str, apache_kafka: str) -> None:
    ours, theirs = (described(at, GROUP, "any") for at in (ottla_broker, apache_kafka))
    assert ours.keys() == theirs.keys()
    of_programs = {name.removeprefix("group.") for name in DEFAULTS_OF_A_PROGRAM}
    found = {name: fields for name, fields in differences(ours, theirs).items() if name not in of_programs}
    assert found == {name: fields for name, (fields, _) in OF_GROUPS.items()}


def test_broker_configs_are_described_as_by_kafka(ottla_broker: str, apache_kafka: str) -> None:
    ours, theirs = (described(at, BROKER, "1") for at in (ottla_broker, apache_kafka))
    assert ours.keys() - theirs.keys() == OURS_ALONE
    assert theirs.keys() <= ours.keys()
    found = {name: fields for name, fields in differences(ours, theirs).items() if name not in DEFAULTS_OF_A_PROGRAM}
    assert found == {name: fields for name, (fields, _) in DIFFERENT.items()}


def test_our_broker_accepts_every_setting_of_kafka_in_its_file(apache_kafka: str, tmp_path: Path) -> None:
    theirs = described(apache_kafka, BROKER, "1")
    file = tmp_path / "server.properties"
    mistakes: set[str] = set()
    for name in theirs:
        file.write_text(f"{name}=1\n")
        try:
            read_sources({}, {}, str(file))
        except ConfigError as error:
            mistakes |= {name} if "unknown setting" in str(error) else set()
    assert mistakes == {"config.providers"}  # the classes of its providers would be missing
