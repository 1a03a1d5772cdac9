"""Brokers with TLS and SASL, ours and Apache Kafka, with the same certificate, users and listeners."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.brokers import Running
from ottla import Broker
from rivals import apache_kafka as rival
from tests.certificates import Authority

USER, PASSWORD = "alice", "al1ce"
MECHANISM = "SCRAM-SHA-512"
SCRAM = f"{MECHANISM}=[name={USER},password={PASSWORD}]"
STORE_PASSWORD = "store-secret"
LISTENERS = ("SSL", "SASL_SSL")
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


class Secured(NamedTuple):
    """One broker with its listeners."""

    plain: Running
    by_tls: Running
    by_login: str
    """The address of the SASL_SSL listener."""
    authority: str


def secured(name: str, process: int, addresses: dict[str, str], authority: str) -> Secured:
    tls = (("security.protocol", "ssl"), ("ssl.ca.location", authority))
    return Secured(
        Running(name, addresses["PLAINTEXT"], process),
        Running(name, addresses["SSL"], process, tls),
        addresses["SASL_SSL"],
        authority,
    )


@contextmanager
def ours(authority: Authority) -> Iterator[Secured]:
    """Start our broker in a process of its own."""
    made = authority.certificate()
    settings: dict[str, Any] = {
        "listen": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "ssl_keystore_location": authority.write("server.pem", made.chain + made.key),
        "sasl_enabled_mechanisms": MECHANISM,
        "add_scram": SCRAM,
    }
    with TemporaryDirectory(prefix="ottla-bench-") as folder, Broker(folder, process=True, **settings) as broker:
        yield secured("ottla", broker.pid, dict(broker.addresses), authority.file)


@contextmanager
def theirs(authority: Authority) -> Iterator[Secured | None]:
    """Start Apache Kafka. Yields None if its jars have not been fetched."""
    if not rival.fetched():
        yield None
        return
    store = authority.folder / "broker.p12"
    store.write_bytes(authority.certificate().pkcs12(STORE_PASSWORD))
    settings = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "sasl.enabled.mechanisms": MECHANISM,
        f"listener.name.sasl_ssl.{MECHANISM.lower()}.sasl.jaas.config": MODULE,
    }
    with rival.apache_kafka(settings, listeners=LISTENERS, formatted_with=["--add-scram", SCRAM]) as kafka:
        addresses = {"PLAINTEXT": kafka.bootstrap_servers, **kafka.listeners}
        yield secured("Apache Kafka", kafka.process, addresses, authority.file)


@contextmanager
def both() -> Iterator[list[Secured]]:
    """Start ours, and Apache Kafka if it is available."""
    with TemporaryDirectory(prefix="ottla-bench-") as folder, ExitStack() as running:
        authority = Authority(Path(folder))
        found = [running.enter_context(start(authority)) for start in (ours, theirs)]
        yield [each for each in found if each is not None]
