"""Key stores that are changed at run time are accepted or rejected by our cluster exactly as by Apache Kafka."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.errors import ErrorCode
from ottla.free_ports import free_port
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from rivals import apache_kafka as rival
from tests.broker.cluster_nodes import BrokerPlace
from tests.broker.quorum_nodes import Place, new_hosts
from tests.broker.wire import Wire
from tests.certificates import Authority
from tests.patience import eventually

BROKER, OTHER = 4, 102
TAKEN, REFUSED = 0, int(ErrorCode.INVALID_REQUEST)
SETTING = "listener.name.ssl.ssl.keystore.location"
LISTENERS = {
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.name.ssl.ssl.keystore.type": "PEM",
}


class BrokerUnderTest(NamedTuple):
    """A broker, the authority of its first certificate, and the address of another broker that accepts its configs."""

    node_id: int
    plain: str
    tls: str
    other: str
    authority: Authority


def store_of(authority: Authority, name: str = "broker.pem") -> str:
    made = authority.certificate()
    return authority.write(name, made.java_key + made.chain)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def kafka(authority: Authority) -> Iterator[BrokerUnderTest]:
    """A node that receives requests for its own config, and for the config of an unknown node."""
    rival.fetch()
    with rival.apache_kafka(LISTENERS | {SETTING: store_of(authority)}, listeners=("SSL",)) as node:
        yield BrokerUnderTest(1, node.bootstrap_servers, node.listeners["SSL"], "", authority)


@pytest.fixture
def ours(authority: Authority, tmp_path: Path) -> Iterator[BrokerUnderTest]:
    """A controller and two brokers."""
    hosts = new_hosts(3)
    controller = Place(tmp_path, 1, hosts[0])
    controller.format([controller.voter])
    brokers = [BrokerPlace(tmp_path, OTHER - 1 + n, host, [controller]) for n, host in enumerate(hosts[1:])]
    asked, other = brokers
    tls = f"127.0.0.1:{free_port()}"
    asked.settings |= LISTENERS | {
        "listeners": f"PLAINTEXT://{asked.address},SSL://{tls}",
        SETTING: store_of(authority),
    }
    asked.write()
    with ExitStack() as undo:
        for each in (controller, *brokers):
            undo.callback(each.kill)
        controller.start()
        asked.start()
        other.start()
        yield BrokerUnderTest(asked.node_id, asked.address, tls, other.address, authority)


def set_key_store(address: str, node_id: int, store: Path, *, dry: bool = False) -> int:
    """Set the broker's key store to `store`, and return the error code of the response."""
    wanted = AlterConfigsResource(BROKER, str(node_id), [AlterableConfig(SETTING, 0, str(store))])
    with Wire(address) as wire:
        (reported,) = wire.ask(IncrementalAlterConfigsRequest([wanted], dry)).responses
    return int(reported.error_code)


def shows(asked: BrokerUnderTest, authority: Authority) -> bool:
    """True if a new connection receives a certificate that `authority` has signed."""
    context = ssl.create_default_context(cafile=authority.file)
    host, port = asked.tls.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as sock:
        try:
            context.wrap_socket(sock, server_hostname=host).close()
        except ssl.SSLCertVerificationError:
            return False
    return True


@pytest.mark.parametrize("whose", ["kafka", "ours"])
def test_an_invalid_store_is_rejected_by_every_broker_and_a_valid_one_is_used(
    request: pytest.FixtureRequest, whose: str, tmp_path: Path
) -> None:
    asked: BrokerUnderTest = request.getfixturevalue(whose)
    made, store = asked.authority.certificate(), tmp_path / "new.pem"
    for bad in (made.chain, "nonsense", None):
        store.unlink() if bad is None else store.write_text(bad)
        for dry in (True, False):
            assert set_key_store(asked.plain, asked.node_id, store, dry=dry) == REFUSED
            if asked.other:
                assert set_key_store(asked.other, asked.node_id, store, dry=dry) == REFUSED
        assert shows(asked, asked.authority)
    again = tmp_path / "again.pem"  # Kafka rejects a certificate with another name
    again.write_bytes((tmp_path / "broker.pem").read_bytes())
    assert set_key_store(asked.other or asked.plain, asked.node_id if asked.other else OTHER, again) == REFUSED
    assert set_key_store(asked.plain, asked.node_id, again) == TAKEN
    assert shows(asked, asked.authority)


def test_a_store_of_another_authority_is_used_for_the_next_connection(ours: BrokerUnderTest, tmp_path: Path) -> None:
    (folder := tmp_path / "another").mkdir()
    another = Authority(folder)
    assert not shows(ours, another)
    assert set_key_store(ours.plain, ours.node_id, Path(store_of(another))) == TAKEN
    eventually(lambda: shows(ours, another))
    mixed = another.certificate().chain + another.certificate().java_key
    assert set_key_store(ours.plain, ours.node_id, Path(another.write("mixed.pem", mixed))) == REFUSED
    assert shows(ours, another)
