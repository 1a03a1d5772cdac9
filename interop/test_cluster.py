"""Our broker in an Apache Kafka cluster, verified through the logs and responses of Kafka's controllers."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interop.kafka_tools import Tools, dump
from ottla import Admin, Consumer, NewTopic, Producer
from ottla.client.admin import ConfigResource
from ottla.errors import AuthenticationError, OttlaError, TopicAlreadyExistsError
from ottla.free_ports import free_port
from rivals import apache_kafka as rival
from rivals.apache_kafka import CLUSTER_ID, ApacheKafka
from rivals.kafka_cluster import (
    JAAS,
    LOG,
    OTTLA,
    PASSWORD,
    PATIENCE,
    USER,
    formatted,
    image_of,
    security,
    settings_of,
    wait_for,
)

OURS = 7
OTHER_CLUSTER = "AAAAAAAAAAAAAAAAAAAAMg"
SESSION_SECONDS = 4
"""The same values as `rivals.kafka_cluster.SHORT`."""


@pytest.fixture(scope="module")
def kafka(kafka_cluster: ApacheKafka) -> ApacheKafka:
    return kafka_cluster


@pytest.fixture(scope="module")
def properties(kafka: ApacheKafka, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The properties file of our broker, with a formatted directory."""
    folder = tmp_path_factory.mktemp("joined")
    file = folder / "server.properties"
    file.write_text(rival.render(settings_of(OURS, kafka, folder)))
    return formatted(file)


def another_broker(properties: Path, number: int, name: str) -> Path:
    """Return the properties file of another broker of ours, with its own directory."""
    file = properties.with_name(f"{name}.properties")
    text = properties.read_text().replace(f"node.id={OURS}", f"node.id={number}").replace("/data", f"/{name}")
    internal = re.search(r"INTERNAL://127.0.0.1:\d+", text)
    assert internal is not None
    file.write_text(text.replace(internal[0], f"INTERNAL://127.0.0.1:{free_port()}"))
    return formatted(file)


@contextmanager
def joined(properties: Path) -> Iterator[str]:
    """Start our broker and yield its address after the controllers have registered it. Stopped cleanly at the end."""
    with subprocess.Popen([*OTTLA, "broker", "--config", str(properties)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert select.select([process.stdout], [], [], PATIENCE)[0], "the controllers did not let the broker in"
            line = process.stdout.readline().decode()
            assert line.startswith("ready "), line
            yield line.split()[1]
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


@pytest.fixture(scope="module")
def ours(properties: Path) -> Iterator[str]:
    with joined(properties) as address:
        yield address


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    with Tools() as tools:
        yield tools


def test_kafkas_tools_see_it_among_the_brokers_and_as_an_observer(ours: str, tools: Tools) -> None:
    at = ("--bootstrap-server", ours)
    endpoints = tools.run("ClusterTool", "list-endpoints", *at).text
    (line,) = [line.split() for line in endpoints.splitlines() if line.startswith(str(OURS))]
    assert line[1:5:3] + line[2:3] == ["127.0.0.1", "unfenced", ours.rpartition(":")[2]]
    replicas = tools.run("MetadataQuorumCommand", *at, "describe", "--replication").text
    assert [line.split()[-1] for line in replicas.splitlines() if line.startswith(str(OURS))] == ["Observer"]


def test_requests_for_the_controllers_are_forwarded(ours: str, kafka: ApacheKafka) -> None:
    with Admin(bootstrap_servers=ours) as admin:
        admin.create_topics([NewTopic("made-through-ours", 4)])
    with Admin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        wait_for(lambda: "made-through-ours" in admin.list_topics())
        partitions = admin.describe_topics(["made-through-ours"])["made-through-ours"].partitions
    assert {partition.replicas for partition in partitions} <= {(1,), (OURS,)}


def test_it_lists_the_config_resources_like_kafkas_broker(ours: str, kafka: ApacheKafka) -> None:
    def list_resources(address: str) -> list[ConfigResource]:
        with Admin(bootstrap_servers=address) as admin:
            return sorted(admin.list_config_resources(["broker", "topic"]))

    wait_for(lambda: list_resources(ours) == list_resources(kafka.bootstrap_servers))
    assert ConfigResource("broker", str(OURS)) in list_resources(ours)


def logged_in(address: str, login: str) -> Admin:
    """Log in with SCRAM over TLS, as brokers do among each other."""
    return Admin(
        {
            "bootstrap.servers": address,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.location": security()["ssl.truststore.location"],
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": f"{JAAS}scram.ScramLoginModule required {login};",
        }
    )


def accepts_login(address: str, login: str) -> bool:
    """True if the broker accepts the login, which it does after it has read the controllers' records."""
    try:
        with logged_in(address, login) as admin:
            return admin.describe_cluster().cluster_id == CLUSTER_ID
    except AuthenticationError:
        return False


def test_a_token_of_the_controllers_logs_in_at_either_broker(ours: str, properties: Path, kafka: ApacheKafka) -> None:
    internal = re.search(r"INTERNAL://(127.0.0.1:\d+)", properties.read_text())
    assert internal is not None
    with logged_in(internal[1], f'username="{USER}" password="{PASSWORD}"') as admin:
        token = admin.create_delegation_token(renewers=["User:bob"], max_lifetime_ms=600_000)
        login = f'username="{token.token_info.token_id}" password="{token.hmac_as_base64}" tokenauth="true"'
        for way in (internal[1], kafka.listeners["INTERNAL"]):
            wait_for(lambda: accepts_login(way, login), f"{way} does not know the token")  # noqa: B023
        assert admin.describe_delegation_token() == [token]
        assert admin.renew_delegation_token(token.hmac) == token.token_info.max_timestamp
        admin.expire_delegation_token(token.hmac)
        wait_for(lambda: not accepts_login(internal[1], login), "the token has not ended")
        wait_for(lambda: admin.describe_delegation_token() == [])


def test_clients_that_bootstrap_from_it_find_leaders_and_coordinators(ours: str) -> None:
    with Admin(bootstrap_servers=ours) as admin:
        admin.create_topics([NewTopic("read-through-ours", 2)])
    with Producer(bootstrap_servers=ours) as producer:
        for number in range(100):
            producer.send("read-through-ours", value=b"%d" % number)
    found: set[bytes | None] = set()
    deadline = time.monotonic() + PATIENCE
    with Consumer(bootstrap_servers=ours, group_id="by-ours", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["read-through-ours"])
        while len(found) < 100 and time.monotonic() < deadline:
            found |= {record.value for record in consumer.poll(0.5)}
    assert found == {b"%d" % number for number in range(100)}


def test_its_metadata_log_equals_the_controllers_byte_for_byte(ours: str, kafka: ApacheKafka, properties: Path) -> None:
    copy = properties.parent / "data" / LOG
    with Admin(bootstrap_servers=ours) as admin:
        admin.create_topics([NewTopic("last-of-all", 1)])
    wait_for(lambda: "last-of-all" in image_of(copy).topics)
    data = copy.read_bytes()
    assert (kafka.directory / LOG).read_bytes()[: len(data)] == data
    registration = image_of(copy).registrations[OURS]
    assert not registration.fenced
    assert registration.cordoned_log_dirs == ()


def test_kafkas_tools_show_its_partitions_and_their_directories(ours: str, properties: Path, tools: Tools) -> None:
    at = ("--bootstrap-server", ours)
    made = ("--create", "--topic", "shown-by-tools", "--replica-assignment", OURS)
    assert tools.run("TopicCommand", *at, *made).status == 0
    with Producer(bootstrap_servers=ours) as producer:
        producer.send("shown-by-tools", value=b"0").result(PATIENCE)
    described = tools.run("TopicCommand", *at, "--describe", "--topic", "shown-by-tools").text
    assert f"Leader: {OURS}\tReplicas: {OURS}\tIsr: {OURS}" in described
    reported = tools.run(
        "LogDirsCommand", *at, "--describe", "--broker-list", OURS, "--topic-list", "shown-by-tools"
    ).text
    (broker,) = json.loads(next(line for line in reported.splitlines() if line.startswith("{")))["brokers"]
    (directory,) = broker["logDirs"]
    assert (broker["broker"], directory["error"]) == (OURS, None)
    assert directory["logDir"] == str(properties.parent / "data")
    assert [each["partition"] for each in directory["partitions"]] == ["shown-by-tools-0"]


def test_kafkas_tool_decodes_its_metadata_log(ours: str, properties: Path) -> None:
    text = dump(properties.parent / "data" / LOG, "--cluster-metadata-decoder")
    assert ours
    registered = [line for line in text.splitlines() if "REGISTER_BROKER_RECORD" in line]
    assert any(f'"brokerId":{OURS},' in line for line in registered)
    assert "isvalid: false" not in text
    assert "Error" not in text


def test_it_shuts_down_cleanly_and_registers_again_as_the_same_broker(
    properties: Path, kafka: ApacheKafka, tools: Tools
) -> None:
    again = another_broker(properties, 8, "again")
    data = properties.parent / "again"
    epochs = []
    for _ in range(2):
        with joined(again) as address:
            begun = time.monotonic()
            assert address
        assert time.monotonic() - begun < PATIENCE / 2
        epochs.append(json.loads((data / ".kafka_cleanshutdown").read_text())["brokerEpoch"])
        registration = image_of(kafka.directory / LOG).registrations[8]
        # At once, and not after its session timeout.
        assert (registration.epoch, registration.fenced) == (epochs[-1], True)
    assert 0 < epochs[0] < epochs[1]
    endpoints = tools.run(
        "ClusterTool", "list-endpoints", "--bootstrap-server", kafka.bootstrap_servers, "--include-fenced-brokers"
    ).text
    (line,) = [line.split() for line in endpoints.splitlines() if line.startswith("8 ")]
    assert "fenced" in line


def rejected_start(properties: Path) -> str:
    """Start a broker and wait until its registration is rejected. Return its error output."""
    begun = time.monotonic()
    command = [*OTTLA, "broker", "--config", str(properties)]
    end = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert time.monotonic() - begun < PATIENCE / 2
    assert end.returncode == 1
    (sentence,) = [line for line in end.stderr.splitlines() if line.startswith("ottla: ")]
    return sentence


def test_a_wrong_password_is_a_one_line_error_at_once(properties: Path) -> None:
    wrong = another_broker(properties, 9, "wrong")
    wrong.write_text(wrong.read_text().replace(f'password="{PASSWORD}" user_', 'password="n0pe" user_'))
    sentence = rejected_start(wrong)
    assert f"it rejected the login by PLAIN as '{USER}': Authentication failed" in sentence
    assert sentence.endswith("check the name and password in listener.name.controller.plain.sasl.jaas.config")


def read_meta_properties(properties: Path) -> dict[str, str]:
    """Return the fields of `meta.properties` in the directory of a broker."""
    (folder,) = re.findall("(?m)^log.dirs=(.*)$", properties.read_text())
    lines = Path(folder, "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def with_meta_properties(properties: Path, **fields: str) -> Path:
    """Return properties of the same broker with changed fields in its `meta.properties`."""
    (folder,) = re.findall("(?m)^log.dirs=(.*)$", properties.read_text())
    said = read_meta_properties(properties) | {name.replace("_", "."): value for name, value in fields.items()}
    Path(folder, "meta.properties").write_text("".join(f"{name}={value}\n" for name, value in said.items()))
    return properties


def test_a_directory_of_another_cluster_is_rejected_with_both_ids(properties: Path) -> None:
    sentence = rejected_start(
        with_meta_properties(another_broker(properties, 20, "elsewhere"), cluster_id=OTHER_CLUSTER)
    )
    assert f"cluster.id = {OTHER_CLUSTER} in meta.properties, and the cluster of the controller at " in sentence
    assert f" is {CLUSTER_ID}: look at controller.quorum.bootstrap.servers" in sentence


def test_a_directory_of_another_node_is_rejected_with_both_ids(properties: Path) -> None:
    sentence = rejected_start(with_meta_properties(another_broker(properties, 21, "renumbered"), node_id="99"))
    assert "belongs to node 99, this is node 21: start with node.id=99 or choose another directory" in sentence


def test_a_directory_that_is_registered_by_another_broker_is_rejected(ours: str, properties: Path) -> None:
    directory_id = read_meta_properties(properties)["directory.id"]
    sentence = rejected_start(with_meta_properties(another_broker(properties, 22, "copied"), directory_id=directory_id))
    assert f"directory.id = {directory_id} in meta.properties is that of a directory of broker {OURS} (" in sentence
    assert ours in sentence
    assert "and this is broker 22" in sentence


def test_a_second_broker_with_the_same_id_is_rejected_and_the_first_continues(ours: str, properties: Path) -> None:
    twin = another_broker(properties, OURS, "twin")
    twin.write_text(twin.read_text() + "\ninitial.broker.registration.timeout.ms=6000\n")
    sentence = rejected_start(twin)
    assert f"node.id = {OURS} is used by another running broker (" in sentence
    assert ours in sentence
    with Admin(bootstrap_servers=ours) as admin:
        admin.create_topics([NewTopic("beside-a-twin", 1)])


def test_it_serves_its_partitions_without_a_controller_and_registers_again(
    ours: str, kafka: ApacheKafka, properties: Path
) -> None:
    with Admin(bootstrap_servers=ours) as admin:
        admin.create_topics([NewTopic("led-by-ours", replica_assignments={0: (OURS,)})])
    epoch = image_of(kafka.directory / LOG).registrations[OURS].epoch
    with Producer(bootstrap_servers=ours) as producer:
        producer.send("led-by-ours", value=b"0").result(PATIENCE)
        os.kill(kafka.process, signal.SIGSTOP)
        try:
            # For longer than a session timeout.
            deadline = time.monotonic() + 1.5 * SESSION_SECONDS
            while time.monotonic() < deadline:
                producer.send("led-by-ours", value=b"1").result(PATIENCE)
        finally:
            os.kill(kafka.process, signal.SIGCONT)
        wait_for(lambda: creates(ours, "after-the-silence"), "the controllers do not hear it")
        wait_for(lambda: not image_of(kafka.directory / LOG).registrations[OURS].fenced)
        producer.send("led-by-ours", value=b"2").result(PATIENCE)
    assert image_of(kafka.directory / LOG).registrations[OURS].epoch == epoch


def creates(address: str, topic: str) -> bool:
    """True if the controllers create a topic for a request that a broker forwards."""
    try:
        with Admin(bootstrap_servers=address, request_timeout_ms=5_000) as admin:
            admin.create_topics([NewTopic(topic, 1)])
    except TopicAlreadyExistsError:
        pass
    except OttlaError:
        return False
    return True
