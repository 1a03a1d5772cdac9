"""`ottla registry` and `ottla broker --registry`."""

from __future__ import annotations

import json
import signal
import urllib.request
from pathlib import Path

import pytest

from ottla import Broker
from tests.cli.conftest import PATIENCE, ottla, start


def register(url: str) -> int:
    """Register a schema and return its id."""
    body = json.dumps({"schema": '"int"'}).encode()
    kind = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/subjects/s/versions", body, kind)
    return int(json.loads(urllib.request.urlopen(request, timeout=PATIENCE).read())["id"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_registry_prints_its_address_and_ends_on_a_signal(number: signal.Signals) -> None:
    with Broker() as broker:
        process = start("registry", "--bootstrap-server", broker.bootstrap_servers, "--listen", "127.0.0.1:0")
        assert process.stdout is not None
        ready, address = process.stdout.readline().split()

        assert ready == "ready"
        assert register(f"http://{address}") == 1
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0
    assert "Traceback" not in errors


def test_a_brokers_registry_ends_with_the_broker() -> None:
    process = start("broker", "--listen", "127.0.0.1:0", "--registry", "127.0.0.1:0", apart=True)
    assert process.stdout is not None
    process.stdout.readline()
    url = process.stdout.readline().split()[1]

    assert register(url) == 1
    process.kill()
    process.communicate(timeout=PATIENCE)  # ends when the registry has closed its output, too


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--listen", "x"], "invalid value 'x' for --listen"),
        (["--auth", "/nowhere.json"], "--auth /nowhere.json: No such file or directory"),
        (["--certificate", "/nowhere.pem"], "--certificate /nowhere.pem: No such file or directory"),
        (["--key", "key.pem"], "--key needs --certificate"),
    ],
)
def test_a_wrong_option_is_one_sentence(options: list[str], sentence: str) -> None:
    done = ottla("registry", *options)

    assert done.status == 2
    assert sentence in done.sentence


def test_a_broker_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    done = ottla(
        "registry",
        "--bootstrap-server",
        "127.0.0.1:1",
        "--listen",
        "127.0.0.1:0",
        "--set",
        "default.api.timeout.ms=500",
    )

    assert done.status == 1
    assert "127.0.0.1:1" in done.sentence
