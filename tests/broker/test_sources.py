"""Settings from a file, the environment and the command line: precedence and errors."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ottla
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.settings.config_entries import broker_entries, topic_entries
from ottla.broker.settings.dynamic_config import DynamicSettings
from ottla.broker.settings.sources import Gathered, read_sources
from ottla.errors import ConfigError

DELAY = "group_initial_rebalance_delay_ms"
KAFKAS_OWN = """
# The settings that Kafka 4 comes with.
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "server.properties"


def gathered(file: Path, text: str = "", environment: dict[str, str] | None = None, **pairs: str) -> Gathered:
    file.write_text(text)
    return read_sources({name.replace("_", "."): value for name, value in pairs.items()}, environment or {}, str(file))


def refused(file: Path, text: str = "", environment: dict[str, str] | None = None, **pairs: str) -> str:
    with pytest.raises(ConfigError) as refusal:
        gathered(file, text, environment, **pairs)
    return str(refusal.value)


def test_arguments_precede_the_environment_the_file_and_the_defaults(file: Path) -> None:
    text = "node.id=2\nnum.partitions=2\nlog.roll.ms=2"
    config = gathered(
        file, text, {"OTTLA_NUM_PARTITIONS": "3", "OTTLA_LOG_ROLL_MS": "3"}, num_partitions="4"
    ).config  # fmt: skip
    assert (config.node_id, config.log_roll_ms, config.num_partitions) == (2, 3, 4)
    assert config.message_max_bytes == BrokerConfig().message_max_bytes
    assert config.given == {"node_id", "log_roll_ms", "num_partitions"}


@pytest.mark.parametrize("text", ["log.dirs=\n", "log.dir=\n", "log.dirs=,\n", "log.dirs=\nlog.dir=/data\n"])
def test_directories_without_a_name_are_an_error_with_its_line_as_in_kafka(file: Path, text: str) -> None:
    name, value = text.splitlines()[0].split("=")
    assert refused(file, text) == (
        f"{file}, line 1: {name} = {value!r}: name a directory; only a single node without this setting uses a temporary one"
    )
    assert refused(file, log_dirs="").startswith("log.dirs = ''")
    assert gathered(file, text, log_dirs="/data").config.directories == ("/data",)


def test_a_file_written_for_kafka_starts_a_broker(file: Path) -> None:
    config, without_effect, _ = gathered(file, KAFKAS_OWN)
    assert [str(endpoint) for endpoint in config.endpoints()] == ["PLAINTEXT://:9092"]
    assert str(config.advertised_endpoints()["PLAINTEXT"]) == "PLAINTEXT://localhost:9092"
    assert config.log_retention_ms == 168 * 3_600_000
    assert "num.io.threads" in without_effect
    assert not {"process.roles", "controller.quorum.bootstrap.servers"} & set(without_effect)


@pytest.mark.parametrize(
    "name",
    [
        "controlled.shutdown.enable",
        "socket.connection.setup.timeout.ms",
        "log.local.retention.ms",  # much like log.retention.ms
        "log.flush.start.offset.checkpoint.interval.ms",
    ],
)
def test_a_kafka_setting_without_effect_is_accepted(file: Path, name: str) -> None:
    assert gathered(file, f"{name}=1").without_effect == [name]


def test_a_name_similar_to_one_of_ours_and_unknown_to_kafka_is_an_error(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'group\.max\.session\.timeout\.ms'"):
        gathered(file, "group.maxx.session.timeout.ms=1")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("log.retention.hours=1", 3_600_000),
        ("log.retention.minutes=2\nlog.retention.hours=1", 120_000),
        ("log.retention.ms=3\nlog.retention.minutes=2", 3),
        ("log.retention.hours=-1", -1),
        ("log.retention.ms=3\nlog.retention.ms=4", 4),
    ],
)
def test_of_several_units_of_one_setting_the_finest_applies_as_in_kafka(file: Path, text: str, ms: int) -> None:
    assert gathered(file, text).config.log_retention_ms == ms


def test_an_alias_on_the_command_line_precedes_the_name_in_the_file(file: Path) -> None:
    assert gathered(file, "log.retention.ms=3", log_retention_minutes="1").config.log_retention_ms == 60_000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\nnum.partition=3", "line 2: unknown setting 'num.partition'; did you mean 'num.partitions'?"),
        ("#\n\nnum.partitions=x", "line 3: num.partitions = 'x': must be a whole number"),
        ("node.id=1\nlisteners=here", "line 2: listeners = 'here': must be host:port"),
        ("log.retention.hours=long", "line 1: log.retention.hours = 'long': must be a whole number"),
        ("a=1\\\n\\u12", "line 1: \\u must be followed"),
        ("default.replication.factor=3", "line 1: default.replication.factor = 3: a single broker keeps one replica"),
        ("authorizer.class.name=x.Y", "line 1: authorizer.class.name = 'x.Y': there is one authorizer here"),
        ("log.flush.interval.msg=1", "did you mean 'log.flush.interval.ms'?"),
    ],
)
def test_an_error_in_a_file_is_reported_with_its_line(file: Path, text: str, said: str) -> None:
    sentence = refused(file, text)
    assert sentence.startswith(f"{file}, line ")
    assert said in sentence


def test_an_error_in_the_environment_names_the_variable(file: Path) -> None:
    assert refused(file, environment={"OTTLA_NUM_PARTITIONS": "x"}).startswith(
        "environment variable OTTLA_NUM_PARTITIONS: num.partitions = 'x'"
    )


def test_unknown_variables_are_reported_and_those_of_a_cluster_are_ignored(file: Path) -> None:
    clusters = {"OTTLA_SERVICE_HOST": "10.0.0.1", "OTTLA_PORT_9092_TCP_ADDR": "10.0.0.1", "OTTLA_PORT": "tcp://x"}
    _, _, warnings = gathered(file, "", {**clusters, "OTTLA_NUM_PARTITION": "3"})
    assert warnings == [
        "unknown environment variable 'OTTLA_NUM_PARTITION'; did you mean 'OTTLA_NUM_PARTITIONS'? (it is ignored)"
    ]


def test_variables_of_other_components_are_ignored(file: Path) -> None:
    named = {
        variable
        for module in Path(ottla.__file__).parent.rglob("*.py")
        for variable in re.findall(r'"(OTTLA_[A-Z_]+[A-Z])"', module.read_text(encoding="utf-8"))
    }
    assert {"OTTLA_BOOTSTRAP_SERVERS", "OTTLA_CONTEXT", "OTTLA_TRACE"} <= named
    assert gathered(file, "", dict.fromkeys(named, "x")).warnings == []


def test_an_unreadable_file_is_reported(tmp_path: Path) -> None:
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(ConfigError, match=rf"^--config {path}: "):
            read_sources({}, {}, str(path))
    (tmp_path / "binary").write_bytes(b"a=\xff")
    with pytest.raises(ConfigError, match="not text in UTF-8"):
        read_sources({}, {}, str(tmp_path / "binary"))


@pytest.mark.parametrize(
    ("pairs", "environment", "text", "delay_ms"),
    [
        ({}, {}, None, 0),
        ({"group.initial.rebalance.delay.ms": "3000"}, {}, None, 3000),
        ({}, {"OTTLA_GROUP_INITIAL_REBALANCE_DELAY_MS": "500"}, None, 500),
        ({}, {}, "num.partitions=3", 3000),
        ({}, {}, KAFKAS_OWN, 3000),
        ({"process.roles": "broker", "node.id": "1", "controller.quorum.bootstrap.servers": "h:1",
          "controller.listener.names": "C", "log.dirs": "x"}, {}, None, 3000),
    ],
)  # fmt: skip
def test_a_manually_started_broker_has_no_initial_rebalance_delay(
    tmp_path: Path, pairs: dict[str, str], environment: dict[str, str], text: str | None, delay_ms: int
) -> None:
    file = None if text is None else tmp_path / "server.properties"
    if file is not None and text is not None:
        file.write_text(text)
    found = read_sources(pairs, environment, None if file is None else str(file)).config
    assert getattr(found, DELAY) == delay_ms


def test_a_retention_in_hours_is_the_default_of_topics_and_listed_by_its_own_name(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("log.retention.hours=100\nnum.io.threads=3\nnum.partitions=2\n")
    settings = DynamicSettings(read_sources({}, {}, str(file)).config, {})
    topic = {each.name: each for each in topic_entries({}, settings)}["retention.ms"]
    assert (topic.value, topic.config_source, list(topic.synonyms)) == ("360000000", 5, [])
    broker = {each.name: each for each in broker_entries(settings)}
    sources = {
        name: [(each.value, each.source) for each in broker[name].synonyms]
        for name in ("log.retention.hours", "log.retention.minutes", "log.retention.ms", "num.io.threads")
    }
    assert sources == {
        "log.retention.hours": [("100", 4), ("168", 5)],
        "log.retention.minutes": [],
        "log.retention.ms": [],
        "num.io.threads": [("3", 4), ("8", 5)],
    }
    assert broker["log.retention.ms"].value is None
    assert [(each.value, each.source) for each in broker["node.id"].synonyms] == [("1", 4)]
    assert [(each.value, each.source) for each in broker["num.partitions"].synonyms] == [("2", 4), ("1", 5)]


def test_a_retention_in_ms_precedes_one_in_hours_and_is_listed_as_given() -> None:
    found = read_sources({"log.retention.hours": "100", "log.retention.ms": "5000"}, {}, None).config
    topic = {each.name: each for each in topic_entries({}, DynamicSettings(found, {}))}["retention.ms"]
    assert (topic.value, topic.config_source) == ("5000", 4)
