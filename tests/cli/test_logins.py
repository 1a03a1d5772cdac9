"""Commands for clusters that require TLS and different logins, given by a file and by a context."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla import Broker, Producer
from ottla.cli.main import main
from tests.cli.conftest import start
from tests.patience import eventually

Run = Callable[..., tuple[int, str, str]]


class Place(NamedTuple):
    """A cluster, and the properties file with its login."""

    servers: str
    config: str

    def altered(self, name: str, **settings: object) -> str:
        """Write the same file with some other settings."""
        path = Path(self.config).with_name(name)
        lines = [f"{key.replace('_', '.')}={value}\n" for key, value in settings.items()]
        path.write_text(Path(self.config).read_text() + "".join(lines))
        return str(path)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Place, Place]]:
    """Two clusters with different users and certificates; the first has a topic."""
    folder = tmp_path_factory.mktemp("logins")
    here = "SASL_SSL://127.0.0.1:0"
    with Broker(listen=here, users={"alice": "al1ce"}) as first, Broker(listen=here, users={"bob": "b0b"}) as second:
        with Producer(first.client_settings()) as producer:
            for value in (b"one", b"two"):
                producer.send("orders", value).result(60)
        yield place(folder, first, "first"), place(folder, second, "second")


def place(folder: Path, broker: Broker, name: str) -> Place:
    settings = dict(broker.client_settings())
    (folder / f"{name}.pem").write_text(settings.pop("ssl.ca.pem"))
    settings["ssl.ca.location"] = str(folder / f"{name}.pem")
    file = folder / f"{name}.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return Place(broker.bootstrap_servers, str(file))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run_it(*words: object) -> tuple[int, str, str]:
        status = main([str(word) for word in words])
        return status, *capsys.readouterr()

    return run_it


@pytest.fixture
def contexts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_contexts: None, places: tuple[Place, Place]) -> None:
    """Contexts for both clusters."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name, there in zip(("first", "second"), places, strict=True):
        assert (
            main(["context", "add", name, "--bootstrap-server", there.servers, "--command-config", there.config]) == 0
        )


def test_a_mirror_logs_in_to_each_cluster_as_another_user(run: Run, places: tuple[Place, Place]) -> None:
    _, target = places
    source = places[0].config
    command = ("mirror", "orders", "--once", "--no-groups", "--source-config", source, "--target-config")
    assert run(*command, target.config) == (
        0,
        "2 records copied, 0 remaining\n",
        "topic orders created with 1 partitions\n",
    )
    status, _, result = run(*command, target.altered("wrong", sasl_password="wr0ng"))
    assert status == 1
    assert f"{target.servers} (from bootstrap.servers): it rejected the login by SCRAM-SHA-256 as 'bob'" in result
    assert "wr0ng" not in result


def test_a_context_brings_the_login_to_queries(run: Run, contexts: None) -> None:
    query = ("sql", "select count(*) n from orders", "--json", "--context", "first")
    status, out, _ = run(*query)
    assert (status, json.loads(out)) == (0, [{"n": 2}])
    status, _, result = run(*query, "--set", "sasl.password=wr0ng")
    assert status == 1
    assert "it rejected the login by SCRAM-SHA-256 as 'alice'" in result


def found(out: str, about: str) -> str:
    """Return the doctor's finding for one check."""
    (finding,) = (one for one in json.loads(out) if one["check"] == about)
    return str(finding)


def test_the_doctor_reports_which_step_of_the_login_fails(run: Run, places: tuple[Place, Place]) -> None:
    first, second = places
    _, out, _ = run("doctor", "--json", "--command-config", first.config)
    assert "over SASL_SSL" in found(out, "protocol")
    trusting_another = first.altered("other", ssl_ca_location=second.config.replace(".properties", ".pem"))
    _, out, _ = run("doctor", "--json", "--command-config", trusting_another)
    assert "signed by another authority than the trusted one of the same name" in found(out, "protocol")
    assert "ssl.truststore.location" in found(out, "protocol")


def test_a_member_of_a_secured_cluster_is_traced(places: tuple[Place, Place]) -> None:
    first, _ = places
    words = ("trace", "consume", "orders", "--group", "traced", "--from-beginning", "--command-config", first.config)
    process = start(*words)
    try:
        assert process.stdout is not None
        printed = process.stdout
        eventually(lambda: "assigned orders 0" in printed.readline())
    finally:
        process.kill()
        process.communicate()
