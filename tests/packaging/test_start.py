"""The start script of the image: KAFKA_… variables as apache/kafka takes them, files, formatting, and the broker's command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ottla import Consumer, Producer, TopicPartition
from ottla.errors import ConfigError
from tests.packaging.start_script import FOLDER, START, configure, make_image, read_settings

TESTCONTAINERS = {  # what the Kafka module for Java sets for apache/kafka, with free ports
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_LISTENERS": "PLAINTEXT://127.0.0.1:0,BROKER://127.0.0.1:0,CONTROLLER://127.0.0.1:9094",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_NODE_ID": "1",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": str(2**63 - 1),
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
}
WAITED_FOR = (  # log lines for which the Kafka modules of testcontainers wait
    r".*Transitioning from RECOVERY to RUNNING.*",  # Java, Go
    r".*Kafka Server started.*",  # Python with KRaft
    r".*\[KafkaServer id=\d+\] started.*",  # Python without
)


def test_without_variables_the_defaults_of_one_node_apply(tmp_path: Path) -> None:
    assert configure(tmp_path) == START.DEFAULTS | {"log.dirs": str(tmp_path / "var/lib/ottla")}


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("KAFKA_LOG_DIRS", "log.dirs"),
        ("KAFKA_LISTENER_NAME_SECURE_SCRAM___SHA___512_SASL_JAAS_CONFIG", "listener.name.secure.scram-sha-512.sasl.jaas.config"),
        ("KAFKA_LISTENER_NAME_SECURE_SCRAM-SHA-512_SASL_JAAS_CONFIG", "listener.name.secure.scram-sha-512.sasl.jaas.config"),
        ("KAFKA_LISTENER_NAME_MY__NET_SSL_CLIENT_AUTH", "listener.name.my_net.ssl.client.auth"),
    ],
)  # fmt: skip
def test_a_variable_is_a_setting_with_dots_underscores_and_hyphens(variable: str, name: str) -> None:
    assert START.setting_name(variable) == name


def test_any_variable_replaces_all_defaults(tmp_path: Path) -> None:
    assert configure(tmp_path, KAFKA_NUM_PARTITIONS="3") == {
        "num.partitions": "3",
        "log.dirs": str(tmp_path / "var/lib/ottla"),
    }


def test_variables_override_the_mounted_file(tmp_path: Path) -> None:
    mounted = tmp_path / "mnt/shared/config/server.properties"
    mounted.parent.mkdir(parents=True)
    mounted.write_text("num.partitions=2\nnode.id=7\n", encoding="utf-8")
    settings = configure(tmp_path, KAFKA_NUM_PARTITIONS="3")
    assert (settings["num.partitions"], settings["node.id"]) == ("3", "7")


def test_variables_of_java_are_ignored_and_unknown_ones_are_reported(tmp_path: Path) -> None:
    java = {"KAFKA_HEAP_OPTS": "-Xmx1g", "KAFKA_JMX_PORT": "9999", "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181"}
    image = make_image(tmp_path, **java, KAFKA_NUM_PARTITION="3", PATH="/bin")
    assert image.configure() == ["variable KAFKA_NUM_PARTITION is ignored: this broker has no setting num.partition"]
    assert "num.partition" not in read_settings(image)


def test_listeners_follow_from_the_advertised_ones(tmp_path: Path) -> None:
    settings = configure(tmp_path, KAFKA_ADVERTISED_LISTENERS="A://broker-1:19092,B://[::1]:9093")
    assert settings["listeners"] == "A://0.0.0.0:19092,B://0.0.0.0:9093"


def test_a_controller_has_no_advertised_listeners(tmp_path: Path) -> None:
    roles = {"KAFKA_PROCESS_ROLES": "controller", "KAFKA_LISTENERS": "CONTROLLER://:9093"}
    assert "advertised.listeners" not in configure(tmp_path, **roles, KAFKA_ADVERTISED_LISTENERS="")
    with pytest.raises(ConfigError, match="KAFKA_ADVERTISED_LISTENERS is not supported on a controller"):
        make_image(tmp_path, **roles, KAFKA_ADVERTISED_LISTENERS="PLAINTEXT://a:9092").configure()


def test_key_stores_and_passwords_are_read_from_mounted_secrets(tmp_path: Path) -> None:
    secrets = tmp_path / "etc/kafka/secrets"
    secrets.mkdir(parents=True)
    (secrets / "kafka.jks").touch()
    (secrets / "password").write_text("a=b \\ c\n", encoding="utf-8")
    settings = configure(
        tmp_path,
        KAFKA_SSL_KEYSTORE_FILENAME="kafka.jks",
        KAFKA_SSL_KEYSTORE_CREDENTIALS="password",
        KAFKA_SSL_KEY_CREDENTIALS="password",
    )
    assert settings["ssl.keystore.location"] == str(secrets / "kafka.jks")
    assert settings["ssl.keystore.password"] == settings["ssl.key.password"] == "a=b \\ c"
    with pytest.raises(ConfigError, match="KAFKA_SSL_TRUSTSTORE_FILENAME: there is no file"):
        make_image(tmp_path, KAFKA_SSL_TRUSTSTORE_FILENAME="trust.jks").configure()


@pytest.mark.parametrize(
    ("variables", "options"),
    [
        ({"KAFKA_PROCESS_ROLES": "broker,controller", "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@a:1,2@b:1"}, []),
        ({"KAFKA_PROCESS_ROLES": "broker,controller"}, ["--standalone"]),
        ({"KAFKA_PROCESS_ROLES": "broker"}, ["--no-initial-controllers"]),
        ({"KAFKA_PROCESS_ROLES": "controller", "KAFKA_INITIAL_CONTROLLERS": "1@a:1:x"}, ["--initial-controllers", "1@a:1:x"]),
    ],
)  # fmt: skip
def test_directories_are_formatted_for_the_roles_of_the_node(
    tmp_path: Path, variables: dict[str, str], options: list[str]
) -> None:
    image = make_image(tmp_path, CLUSTER_ID="abc", **variables)
    image.configure()
    file = str(tmp_path / "etc/kafka/kafka.properties")
    common = ["ottla", "storage", "format", "--ignore-formatted", "-t", "abc", "-c", file]
    assert image.format_command() == [*common, *options]
    assert make_image(tmp_path).format_command() == []


def test_the_log_level_of_kafka_is_that_of_the_broker(tmp_path: Path) -> None:
    image = make_image(tmp_path, KAFKA_LOG4J_ROOT_LOGLEVEL="DEBUG", KAFKA_NODE_ID="4")
    image.configure()
    command = image.broker_command(["--console", "0.0.0.0:8080"])
    assert "-vv" in command
    assert command[-2:] == ["--console", "0.0.0.0:8080"]
    assert "[KafkaServer id=4] started" in command[command.index("--ready-line") + 1]


def test_the_script_of_a_testcontainers_module_starts_a_broker_that_receives_signals(tmp_path: Path) -> None:
    """As the module for Java does it: a script sets the advertised listeners, and runs the image's script."""
    commands = tmp_path / "bin"
    commands.mkdir()
    run = commands / "run"
    run.write_text(
        f"#!{sys.executable}\nimport sys\nfrom pathlib import Path\n"
        f"sys.path.insert(0, {str(FOLDER)!r})\nimport os, start\n"
        f"image = start.Image(Path({str(tmp_path)!r}), os.environ)\nimage.configure()\n"
        "start.launch(image, ['--listen', 'PLAINTEXT://127.0.0.1:0', '--metrics', '127.0.0.1:0'])\n",
        encoding="utf-8",
    )
    ottla = commands / "ottla"
    ottla.write_text(
        f"#!{sys.executable}\nimport sys\nfrom ottla.__main__ import main\nsys.exit(main())\n", encoding="utf-8"
    )
    starter = tmp_path / "testcontainers_start.sh"
    starter.write_text(f"#!/bin/bash\nexport KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS=0\nexec {run} \n", encoding="utf-8")
    for script in (run, ottla, starter):
        script.chmod(0o755)
    variables = os.environ | TESTCONTAINERS | {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}"}
    del variables["KAFKA_LISTENERS"]
    process = subprocess.Popen([starter], env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("ready ").strip()
        line = process.stdout.readline()
        assert [pattern for pattern in WAITED_FOR if not re.search(pattern, line)] == []
        with Producer(bootstrap_servers=address) as producer:
            assert producer.send("orders", b"one").result(timeout=30).offset == 0
        with Consumer(bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("orders", 0)])
            assert [record.value for record in consumer.poll(timeout=30)] == [b"one"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert TESTCONTAINERS["CLUSTER_ID"] in (tmp_path / "var/lib/ottla/meta.properties").read_text("utf-8")
    finally:
        process.kill()
        process.communicate()
