"""`ottla.Cluster`: three nodes on this machine, each a broker and a voter, killed and started."""

from __future__ import annotations

import fcntl
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import pytest

from ottla import Admin, Cluster, Consumer, NewTopic, Producer
from ottla import free_ports as ports_of_all
from ottla.broker.embedding.local_network_partition import list_addresses
from ottla.broker.embedding.local_nodes import (
    LocalNode,
    build_settings,
    count_voters,
    format_nodes,
    plan_nodes,
    read_nodes,
)
from ottla.client.admin import ConfigResource, FeatureUpdate
from ottla.clock import SystemClock
from ottla.coordination.quorum import wire
from ottla.coordination.quorum.log_shape import LogShape, SnapshotId
from ottla.coordination.quorum.voters import ReplicaKey
from ottla.errors import ConfigError, ErrorCode, IllegalStateError, KafkaError, OttlaError
from ottla.free_ports import HeldPorts, free_ports, hold_port
from ottla.properties import property_line, read_properties
from ottla.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from ottla.protocol.messages.incremental_alter_configs import (
    SET,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.schema import Message
from tests.broker.cluster_nodes import counted
from tests.broker.in_sync import in_sync
from tests.broker.wire import Wire
from tests.patience import eventually

OFFSETS = "__consumer_offsets"
BROKER, LOGGER = 4, 8
EPOCH = 1_000
"""Later than any of a quorum that is young."""
pytestmark = pytest.mark.xdist_group("local cluster")  # what they share is made once


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(metrics_listen="127.0.0.1:0") as cluster:
        yield cluster


def led(admin: Admin, topic: str) -> tuple[int, set[int]]:
    """Return the leader of the first partition, and the ISR."""
    partition = admin.describe_topics([topic])[topic].partitions[0]
    return partition.leader, set(partition.in_sync_replicas)


def in_sync_to(cluster: Cluster, topic: str, *nodes: int) -> set[int]:
    """Return the description by those nodes; a client that knows all nodes may query the isolated one, which considers
    itself active.
    """
    with Admin(bootstrap_servers=",".join(cluster.addresses[each] for each in nodes)) as admin:
        return in_sync(admin, topic)


@pytest.mark.behaviour("B4", "B5", "B6")
def test_topics_have_three_replicas_and_each_node_may_be_killed_and_restarted(cluster: Cluster) -> None:
    assert cluster.nodes == cluster.running == (1, 2, 3)
    with Producer(cluster.client_settings(), acks="all") as producer, Admin(cluster.client_settings()) as admin:
        admin.create_topics([NewTopic("three", 3)])
        for node in cluster.nodes:
            producer.send("three", b"before %d" % node).result(60)
            cluster.kill(node)
            producer.send("three", b"without %d" % node).result(60)
            assert node not in cluster.running
            cluster.start(node)
            eventually(lambda: in_sync(admin, "three") == {1, 2, 3})
    assert counted(cluster.bootstrap_servers, "three", 6) == {
        b"%s %d" % (word, node): 1 for word in (b"before", b"without") for node in cluster.nodes
    }


@pytest.mark.behaviour("B4", "B6")
def test_a_group_created_while_a_node_is_down_survives_the_next_failure() -> None:
    with Cluster() as young:
        settings = young.client_settings()
        with (
            Admin(settings) as admin,
            Producer(settings, acks="all") as producer,
            Consumer(settings, group_id="g", auto_offset_reset="earliest") as consumer,
        ):
            producer.send("t", b"1").result(60)
            young.kill(1)
            eventually(lambda: len(admin.describe_cluster().nodes) == 2)
            consumer.subscribe(["t"])
            eventually(lambda: len(consumer.poll(0.2)))
            assert {len(each.replicas) for each in admin.describe_topics([OFFSETS])[OFFSETS].partitions} == {3}
            young.start(1)
            young.kill(2)
            consumer.commit()


def test_a_stopped_node_transfers_its_leaderships(cluster: Cluster) -> None:
    with Admin(cluster.client_settings()) as admin:
        admin.create_topics([NewTopic("led-by-two", replica_assignments={0: (2, 1, 3)})])
        eventually(lambda: "led-by-two" in admin.list_topics() and in_sync(admin, "led-by-two") == {1, 2, 3})
        cluster.stop(2)
        eventually(lambda: led(admin, "led-by-two") == (1, {1, 3}))
        cluster.start(2)


def test_each_brokers_settings_are_changed_regardless_of_the_active_controller(cluster: Cluster) -> None:
    brokers = {ConfigResource("broker", str(node)): {"log.retention.ms": str(node * 1000)} for node in cluster.nodes}
    with Admin(cluster.client_settings()) as admin:
        admin.alter_configs(brokers)
        eventually(lambda: all(set_on(admin, each) == wanted["log.retention.ms"] for each, wanted in brokers.items()))


def test_unclean_elections_can_be_enabled_and_disabled_at_run_time(cluster: Cluster) -> None:
    name, everybody = "eligible.leader.replicas.version", ConfigResource("broker", "")
    with Admin(cluster.client_settings()) as admin:
        assert admin.describe_features().supported_features[name].max_version == 1
        eventually(lambda: set_on(admin, everybody, "min.insync.replicas") == "2")
        admin.update_features({name: FeatureUpdate(0, "SAFE_DOWNGRADE")})
        eventually(lambda: name not in admin.describe_features().finalized_features)
        admin.alter_configs({everybody: {"min.insync.replicas": None}, first_of(cluster): {"min.insync.replicas": 1}})
        admin.update_features({name: 1})
        eventually(lambda: name in admin.describe_features().finalized_features)
        eventually(lambda: set_on(admin, everybody, "min.insync.replicas") == "2")
        with pytest.raises(KafkaError, match="one number for all brokers"):
            admin.alter_configs({first_of(cluster): {"min.insync.replicas": 1}})


def first_of(cluster: Cluster) -> ConfigResource:
    return ConfigResource("broker", str(cluster.nodes[0]))


def set_on(admin: Admin, resource: ConfigResource, name: str = "log.retention.ms") -> str | None:
    """Return a setting as known to the queried broker."""
    entry = admin.describe_configs([resource])[resource].get(name)
    return None if entry is None else entry.value


def wanted_by(cluster: Cluster) -> list[list[str]]:
    """Return the metrics that each node requests from a client."""
    with ExitStack() as open_ones:
        wires = [open_ones.enter_context(Wire(address)) for address in cluster.addresses.values()]
        return [list(wire.ask(GetTelemetrySubscriptionsRequest()).requested_metrics) for wire in wires]


@pytest.mark.behaviour("B8")
def test_a_client_metrics_subscription_is_known_to_each_node_and_to_a_restarted_one(cluster: Cluster) -> None:
    subscription = ConfigResource("client-metrics", "all")
    with Admin(cluster.client_settings(), enable_metrics_push=False) as admin:
        admin.alter_configs({subscription: {"metrics": "*", "interval.ms": 100}})
        eventually(lambda: wanted_by(cluster) == [["*"]] * 3)
        with Producer(cluster.client_settings()) as producer:
            instance_id, sender = producer.client_instance_id(), producer._core.parts.client.telemetry
            reported = sender.node_id
            assert reported is not None
            cluster.kill(reported)
            producer.send("pushed", b"v").result(60)
            eventually(lambda: sender.node_id not in (None, reported))
            assert producer.client_instance_id() == instance_id
        admin.alter_configs({subscription: {"metrics": None, "interval.ms": None}})
        cluster.start(reported)
        eventually(lambda: wanted_by(cluster) == [[]] * 3)


def test_a_broker_listener_answers_no_quorum_requests(cluster: Cluster) -> None:
    with Admin(cluster.client_settings()) as admin:
        before, id_ = admin.describe_metadata_quorum(), admin.describe_cluster().cluster_id or ""
        for request in questions_of_voters(id_):
            with Wire(cluster.addresses[1]) as client:
                client.send(request)
                assert client.hung_up(), request
        with Wire(cluster.addresses[1]) as client:
            asked = wire.fetch_request(id_, ReplicaKey(2), EPOCH, LogShape(), 0, 0, 1_000)
            (topic,) = client.ask(asked).responses
        assert topic.partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
        after = admin.describe_metadata_quorum()
    assert (after.leader_id, after.leader_epoch) == (before.leader_id, before.leader_epoch)


def questions_of_voters(cluster_id: str) -> list[Message]:
    """Every quorum request except Fetch, which brokers serve as well."""
    me, other = ReplicaKey(2), ReplicaKey(1)
    return [
        wire.vote_request(cluster_id, me, other, EPOCH, LogShape(), pre_vote=False),
        wire.begin_request(cluster_id, 2, other, EPOCH, []),
        wire.end_request(cluster_id, 2, EPOCH, [], []),
        wire.snapshot_request(cluster_id, me, EPOCH, SnapshotId(0, 0), 0, 1_000),
    ]


def test_an_unknown_node_is_reported(cluster: Cluster) -> None:
    with pytest.raises(ConfigError, match="unknown node '4'"):
        cluster.kill(4)
    with pytest.raises(IllegalStateError, match="node 1 is running already, as process"):
        cluster.start(1)
    with pytest.raises(IllegalStateError, match="the cluster is already running on"):
        cluster.open()


def test_a_cluster_is_restored_from_its_directory(tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path) as cluster, Producer(cluster.client_settings(), acks="all") as producer:
        producer.send("kept", b"x").result(60)
        addresses = cluster.addresses
    with Cluster(data_dir=tmp_path) as cluster:
        assert cluster.addresses == addresses
        assert counted(cluster.bootstrap_servers, "kept", 1) == {b"x": 1}
    with pytest.raises(ConfigError, match="has a cluster of 3 nodes, and brokers=5"):
        Cluster(5, data_dir=tmp_path).open()
    with pytest.raises(ConfigError, match=r"has a cluster that begins at 127\.0\.0\.1:\d+, not at 127\.0\.0\.1:9092"):
        Cluster(data_dir=tmp_path, listen="127.0.0.1:9092").open()
    assert not list(tmp_path.glob("node-*/*-delete")), "copies for one run are gone"


def test_a_file_as_directory_of_a_cluster_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"data directory .*file cannot be used: it is a file; choose another"):
        Cluster(brokers=3, data_dir=tmp_path / "file").open()


def test_every_method_of_a_cluster_that_is_not_open_is_rejected() -> None:
    cluster = Cluster()
    for asked in (cluster.start, lambda: cluster.start(1), lambda: cluster.kill(1), lambda: cluster.pid(1)):
        with pytest.raises(IllegalStateError, match=r"not running: use it in a with statement, or call open\(\)"):
            asked()


def planned(brokers: int) -> list[LocalNode]:
    """Plan nodes that are not started."""
    with HeldPorts() as ports:
        return plan_nodes(brokers, ports)


def test_a_copied_cluster_directory_is_rejected(tmp_path: Path) -> None:
    nodes = planned(1)
    (tmp_path / "a").mkdir()
    format_nodes(tmp_path / "a", nodes, {}, SystemClock())
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with pytest.raises(ConfigError, match=r"b/node-1\.properties has log\.dirs=.*a/node-1.*change it there"):
        Cluster(1, data_dir=tmp_path / "b").open()


def test_a_cluster_directory_can_be_named_by_any_path(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    format_nodes(tmp_path / "a", planned(1), {}, SystemClock())
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for way in (tmp_path / "link", tmp_path / "a" / ".." / "a"):
        assert list(read_nodes(way, {})) == [1]


@pytest.mark.parametrize("node", [1, 2, 3])
def test_missing_settings_of_a_node_are_reported_and_no_new_node_is_created(tmp_path: Path, node: int) -> None:
    format_nodes(tmp_path, planned(3), {}, SystemClock())
    (tmp_path / f"node-{node}.properties").unlink()
    before = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(ConfigError, match=rf"node-{node}\.properties cannot be read: No such file.*restore it"):
        Cluster(data_dir=tmp_path).open()
    assert before == {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_ports_are_given_to_one_cluster_only(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = free_ports(4)
    with patch.object(ports_of_all, "_chance") as chance, HeldPorts() as ports, HeldPorts() as others:
        chance.randrange.side_effect = [*drawn[:2], *drawn]
        monkeypatch.setattr(ports_of_all, "_given", set())
        first = plan_nodes(1, ports)[0]
        monkeypatch.setattr(ports_of_all, "_given", set())  # another process does not know what this one was given
        second = plan_nodes(1, others)[0]
    assert [first.port, first.controller_port, second.port, second.controller_port] == drawn


def test_the_ports_of_a_restored_cluster_are_reserved_while_no_node_runs(tmp_path: Path) -> None:
    format_nodes(tmp_path, planned(3), {}, SystemClock())
    places = [place for config in read_nodes(tmp_path, {}).values() for place in list_addresses(config)]
    assert len(places) == 6
    with patch.object(Cluster, "_start_all"), Cluster(data_dir=tmp_path):
        for place in places:
            with pytest.raises(OSError, match="in use"):
                hold_port(*place, alone=True)


def test_a_port_in_use_is_reported_and_no_process_remains() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cluster = Cluster(1, listen=f"127.0.0.1:{port}")
        with pytest.raises(OttlaError, match="the port is taken by another process"):
            cluster.open()
    assert cluster.running == ()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"brokers": 0}, "brokers = 0: must be between 1 and 20"),
        ({"data_dir": ""}, "data_dir is empty"),
        ({"listen": "9092"}, "listen = '9092'"),
        ({"listen": "127.0.0.1:65534"}, "the ports after it are for the other brokers"),
        ({"listen": ":9092"}, "listen = ':9092'"),
    ],
)
def test_an_invalid_cluster_is_rejected(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Cluster(**arguments)  # type: ignore[arg-type]


def test_at_port_0_a_cluster_gets_free_ports_and_keeps_them_with_its_directory(tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        with patch.object(Cluster, "_start_all"), Cluster(3, listen="127.0.0.1:0", data_dir=tmp_path) as cluster:
            found.append(cluster.addresses)
    ports = {int(address.rpartition(":")[2]) for address in found[0].values()}
    assert len(ports) == 3
    assert 0 not in ports
    assert found[1] == found[0]


def level(kind: int, name: str) -> AlterConfigsResource:
    return AlterConfigsResource(kind, name, [AlterableConfig("ottla.broker.event_loop.disk", SET, "DEBUG")])


def test_each_node_sets_the_levels_of_its_own_loggers(cluster: Cluster) -> None:
    with Wire(cluster.addresses[2]) as wire:
        (answer,) = wire.ask(IncrementalAlterConfigsRequest([level(LOGGER, "2")])).responses
        assert answer.error_code == ErrorCode.NONE
        asked = DescribeConfigsRequest([DescribeConfigsResource(LOGGER, "2", ["ottla.broker.event_loop.disk"])])
        assert [each.value for each in wire.ask(asked).results[0].configs] == ["DEBUG"]
        other, beside = wire.ask(IncrementalAlterConfigsRequest([level(LOGGER, "1"), level(BROKER, "")])).responses
        assert "a request of its own" in (other.error_message or "")
        assert "nothing was changed" in (beside.error_message or "")


def test_a_misspelled_setting_is_reported_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match=r"did you mean 'num\.partitions'"):
        Cluster(num_partition=3).open()


def test_the_number_of_voters_is_odd_if_there_are_enough_nodes() -> None:
    assert [count_voters(brokers) for brokers in range(1, 9)] == [1, 2, 3, 3, 5, 5, 5, 5]
    assert [each.controller_port is not None for each in planned(4)] == [True, True, True, False]


def test_written_settings_are_read_back_unchanged(tmp_path: Path) -> None:
    nodes = planned(3)
    settings = build_settings(nodes[0], nodes, tmp_path / "a\\b", {"audit_log": "=:\n#\\"})
    text = "".join(property_line(name, value) for name, value in settings.items())
    assert {each.key: each.value for each in read_properties(text)} == settings


def test_each_node_lists_all_running_nodes_when_the_cluster_is_open_and_after_a_restart(cluster: Cluster) -> None:
    for node in cluster.nodes:
        cluster.kill(node)
        cluster.start(node)
        for address in cluster.addresses.values():
            with Admin(bootstrap_servers=address) as admin:
                assert {each.node_id for each in admin.describe_cluster().nodes} == {1, 2, 3}


def test_a_node_without_contact_to_another_does_not_report_it(cluster: Cluster) -> None:
    process = cluster._processes[1]
    assert not process.has_met([1, 2, 3, 99], 0.2)
    assert process.has_met([3, 2, 1], 10)


def test_nodes_are_awaited_in_a_program_with_a_thousand_open_files(cluster: Cluster) -> None:
    process = cluster._processes[1]
    pipe = process._process.stdout
    assert pipe is not None
    far = fcntl.fcntl(pipe, fcntl.F_DUPFD_CLOEXEC, 1024)
    with open(far, "rb", buffering=0) as high, patch.object(process._process, "stdout", high):
        assert process.has_met([1, 2, 3], 60)


@pytest.mark.behaviour("B4", "B5")
def test_an_isolated_leader_is_replaced_and_rejoins_with_the_records_of_the_others(cluster: Cluster) -> None:
    impatient = Producer(cluster.client_settings(), acks="all", request_timeout_ms=2000)
    with impatient as producer, Admin(cluster.client_settings()) as admin:
        admin.create_topics([NewTopic("split", replica_assignments={0: (2, 1, 3)})])
        producer.send("split", b"before").result(60)
        cluster.partition_off(2)
        producer.send("split", b"without 2").result(60)
        eventually(lambda: in_sync_to(cluster, "split", 1, 3) == {1, 3})
        cluster.heal()
        eventually(lambda: in_sync(admin, "split") == {1, 2, 3})
        producer.send("split", b"again").result(60)
    assert counted(cluster.bootstrap_servers, "split", 3) == {b"before": 1, b"without 2": 1, b"again": 1}


@pytest.mark.behaviour("P3")
def test_below_min_isr_acks_all_fails_and_acks_1_succeeds(
    cluster: Cluster,
) -> None:
    with Admin(cluster.client_settings()) as admin:
        layout, strict = {0: (1, 2, 3)}, {"min.insync.replicas": "3"}
        admin.create_topics([NewTopic("strict", replica_assignments=layout, configs=strict)])
    once = {"enable_idempotence": False, "retries": 0}
    with (
        Producer(cluster.client_settings(), acks="all", **once) as all_of_them,  # type: ignore[arg-type]
        Producer(cluster.client_settings(), acks="1", **once) as leader_alone,  # type: ignore[arg-type]
    ):
        cluster.kill(3)
        eventually(lambda: in_sync_to(cluster, "strict", 1, 2) == {1, 2})
        with pytest.raises(KafkaError) as failure:
            all_of_them.send("strict", b"all").result(60)
        assert failure.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert leader_alone.send("strict", b"one").result(60).offset >= 0
        cluster.start(3)


def test_isolated_nodes_decide_nothing_and_lose_nothing(cluster: Cluster) -> None:
    with Producer(cluster.client_settings(), acks="all", delivery_timeout_ms=120_000) as producer:
        producer.send("alone", b"before").result(60)
        cluster.partition_off(1)
        cluster.partition_off(3)
        waiting = producer.send("alone", b"meanwhile")
        with pytest.raises(TimeoutError):
            waiting.result(1)
        with pytest.raises(IllegalStateError, match="heal"):
            cluster.start(2)
        cluster.heal()
        waiting.result(60)
    assert counted(cluster.bootstrap_servers, "alone", 2) == {b"before": 1, b"meanwhile": 1}


def test_an_unregistered_running_node_rejects_clients_and_votes_until_it_is_restarted() -> None:
    with Cluster() as cluster, Admin(cluster.client_settings()) as admin:
        leader = admin.describe_metadata_quorum().leader_id
        node = next(each for each in cluster.nodes if each != leader)
        host, port = cluster.addresses[node].split(":")
        unregister(admin, node)
        eventually(lambda: refuses_at(host, int(port)))

        def fetched_ms() -> int:
            voters = admin.describe_metadata_quorum().voters
            return next(each.last_fetch_timestamp or 0 for each in voters if each.replica_id == node)

        before = fetched_ms()
        eventually(lambda: fetched_ms() > before)
        assert node in cluster.running
        assert {each.node_id for each in admin.describe_cluster().nodes} == {1, 2, 3} - {node}
        assert admin.describe_cluster(include_fenced_brokers=True).fenced_nodes == ()
        cluster.stop(node)
        cluster.start(node)
        eventually(lambda: len(admin.describe_cluster().nodes) == 3)


def unregister(admin: Admin, node: int) -> None:
    """Unregister a node. A request that is sent again, because its response came late, finds it unregistered."""
    try:
        admin.unregister_broker(node)
    except KafkaError as error:
        if error.code != ErrorCode.BROKER_ID_NOT_REGISTERED:
            raise


def refuses_at(host: str, port: int) -> bool:
    """True if no process listens there."""
    try:
        socket.create_connection((host, port), 5).close()
    except ConnectionRefusedError:
        return True
    return False
