"""Several servers of one topic: one leads, the others forward; a killed leader loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla import Broker
from ottla.registry import records
from ottla.registry.election import Identity, elect
from ottla.registry.records import Content
from tests.patience import eventually
from tests.registry.running import RegistryClient, running_registry

pytestmark = pytest.mark.heavy


def test_the_present_leader_is_elected_again_else_the_lowest_url() -> None:
    first, second, third = (Identity("host", port) for port in (1, 2, 3))
    leading = Identity("host", 3, leader=True)

    assert elect({"a": second, "b": first, "c": third}).master == "b"
    assert elect({"a": second, "b": first, "c": leading}).master == "c"
    assert elect({"a": None, "b": Identity("host", 1, master_eligibility=False)}).master is None


def test_a_follower_forwards_changes_and_reads_their_effect(broker_address: str) -> None:
    names = {"topic": f"_schemas-{uuid.uuid4()}", "group": f"sr-{uuid.uuid4()}"}
    with (
        running_registry(broker_address, **names) as one,
        running_registry(broker_address, **names, may_lead=False) as other,
    ):
        leader, follower = RegistryClient(one.address), RegistryClient(other.address)

        assert follower.register("s", '"int"').body["id"] == 1
        assert follower.get("/subjects") == ["s"]
        assert leader.register("s", '"int"').body["id"] == 1
        assert follower.register("s", '{"type":').body["error_code"] == 42201
        assert follower.request("PUT", "/config/s", {"compatibility": "NONE"}).status == 200
        assert follower.get("/config/s") == leader.get("/config/s") == {"compatibilityLevel": "NONE"}


def test_the_leader_that_leaves_is_replaced(broker_address: str) -> None:
    names = {"topic": f"_schemas-{uuid.uuid4()}", "group": f"sr-{uuid.uuid4()}"}
    with running_registry(broker_address, **names) as remaining:
        with running_registry(broker_address, **names) as leaving:
            assert RegistryClient(leaving.address).register("s", '"int"').status == 200
        assert RegistryClient(remaining.address).register("s", '"long"').status == 200
        assert RegistryClient(remaining.address).get("/subjects/s/versions") == [1, 2]


def test_an_id_that_another_server_takes_meanwhile_is_given_up(broker_address: str) -> None:
    """A leader that was replaced without noticing: the other server's record comes first."""
    from ottla import Producer

    topic = f"_schemas-{uuid.uuid4()}"
    with running_registry(broker_address, topic=topic, group=f"sr-{uuid.uuid4()}") as server:
        client = RegistryClient(server.address)
        client.register("s", '"int"')
        foreign = records.schema_record("t", 1, 2, Content("AVRO", '"bytes"'))
        write = server._topic._send

        async def write_behind(changes: object) -> None:
            server._topic._send = write  # type: ignore[method-assign]
            with Producer(bootstrap_servers=broker_address) as producer:
                producer.send(topic, foreign.value, key=foreign.key, partition=0).result(10)
            await write(changes)  # type: ignore[arg-type]

        server._topic._send = write_behind  # type: ignore[method-assign]
        registered = client.register("u", '"string"')

        assert registered.body["id"] == 3
        assert client.get("/schemas/ids/2")["schema"] == '"bytes"'
        assert client.get("/schemas/ids/3")["schema"] == '"string"'


@contextmanager
def registry_process(address: str, topic: str, group: str) -> Iterator[tuple[subprocess.Popen[str], RegistryClient]]:
    """Run `ottla registry` as a process, with a short session."""
    command = [sys.executable, "-m", "ottla", "registry", "--bootstrap-server", address, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, "--topic", topic, "--group", group], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        yield process, RegistryClient(process.stdout.readline().split()[1])
    finally:
        process.kill()
        process.communicate()


def test_no_id_is_given_twice_and_none_is_lost_when_the_leader_is_killed() -> None:
    topic, group = f"_schemas-{uuid.uuid4()}", f"sr-{uuid.uuid4()}"
    with (
        Broker() as broker,
        registry_process(broker.bootstrap_servers, topic, group) as (first, leader),
        registry_process(broker.bootstrap_servers, topic, group) as (_, survivor),
    ):
        acknowledged: dict[str, int] = {}

        def register(client: RegistryClient, prefix: str) -> None:
            for number in range(1_000):
                name = f"{prefix}{number}"
                try:
                    answer = client.register(name, json.dumps({"type": "fixed", "name": name, "size": 1}))
                except OSError:
                    return
                if answer.status == 200:
                    acknowledged[name] = answer.body["id"]
                elif first.poll() is not None:
                    return

        threads = [
            threading.Thread(target=register, args=(client, f"{prefix}{position}"))
            for position, client in enumerate((leader, survivor))
            for prefix in ("a", "b")
        ]
        for each in threads:
            each.start()
        eventually(lambda: len(acknowledged) > 40)
        first.kill()
        for each in threads:
            each.join(60)

        def registers_again() -> bool:
            return survivor.register("after", '"int"').status == 200

        eventually(registers_again, 40)
        ids = list(acknowledged.values())
        assert len(set(ids)) == len(ids) > 40
        for name, number in acknowledged.items():
            assert survivor.get(f"/subjects/{name}/versions/1")["id"] == number
            assert json.loads(survivor.get(f"/schemas/ids/{number}")["schema"])["name"] == name
