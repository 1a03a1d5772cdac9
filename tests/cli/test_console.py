"""`ottla console`."""

from __future__ import annotations

import json
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from ottla.broker.settings.config import BrokerConfig
from ottla.cli import console_process
from ottla.cli.pipelines.desk import PipelineDesk
from ottla.errors import ConfigError, MissingExtraError
from tests.cli.conftest import PATIENCE, RunningBroker, ottla, start

PIPELINE = """
settings: {bootstrap.servers: "127.0.0.1:1", checkpoints: state/}
pipelines:
  copy:
    source: {type: topic, topic: small}
    sink: {type: topic, topic: small-copy}
"""


def test_the_console_prints_its_address_and_ends_with_ctrl_c(address: str) -> None:
    process = start("console", "--bootstrap-server", address, "--listen", "127.0.0.1:0")
    try:
        assert process.stdout is not None
        word, _, url = process.stdout.readline().strip().partition(" ")
        assert word == "ready"
        with urllib.request.urlopen(f"{url}/api/overview", timeout=PATIENCE) as answer:
            assert b'"brokers":[{' in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE) == ("", "")
        assert process.returncode == 130
    finally:
        process.kill()
        process.wait()


def test_ctrl_c_during_an_unanswered_request_prints_no_traceback() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(PATIENCE)
        process = start(
            "console", "--bootstrap-server", f"127.0.0.1:{silent.getsockname()[1]}", "--listen", "127.0.0.1:0"
        )
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port)) as browser:
                browser.sendall(f"GET /api/overview HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
                with silent.accept()[0]:
                    process.send_signal(signal.SIGINT)
                    assert process.communicate(timeout=PATIENCE) == ("", "")
        finally:
            process.kill()
            process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_brokers_console_process_ends_with_the_broker(tmp_path: Path, number: signal.Signals) -> None:
    broker = RunningBroker(tmp_path, "--console", "127.0.0.1:0")
    try:
        assert broker.process.stdout is not None
        word, _, url = broker.process.stdout.readline().strip().partition(" ")
        assert word == "ready"
        with urllib.request.urlopen(f"{url}/api/brokers", timeout=PATIENCE) as answer:
            assert [each["address"] for each in json.load(answer)["brokers"]] == [broker.address]
    finally:
        ended = broker.end(number)  # which waits until neither has its output any more
    assert (ended.status, ended.out) == (0 if number == signal.SIGINT else -signal.SIGKILL, "")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=PATIENCE)


def test_the_console_of_a_broker_with_a_registry_shows_its_schemas(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path, "--console", "127.0.0.1:0", "--registry", "127.0.0.1:0")
    try:
        assert broker.process.stdout is not None
        urls = sorted((broker.process.stdout.readline().split()[1] for _ in range(2)), key=is_console, reverse=True)
        console, registry = urls
        body = json.dumps({"schema": '"int"'}).encode()
        headers = {"Content-Type": "application/json"}
        wanted = urllib.request.Request(f"{registry}/subjects/counts-value/versions", body, headers)
        urllib.request.urlopen(wanted, timeout=PATIENCE).close()
        with urllib.request.urlopen(f"{console}/api/subjects", timeout=PATIENCE) as answer:
            assert [each["name"] for each in json.load(answer)["subjects"]] == ["counts-value"]
    finally:
        ended = broker.end(signal.SIGINT)
    assert (ended.status, ended.out) == (0, "")


def is_console(url: str) -> bool:
    """Return True if the console answers at an address, and not the registry."""
    try:
        with urllib.request.urlopen(f"{url}/api/overview", timeout=PATIENCE):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return False


def test_the_console_shows_the_registry_of_its_option(address: str) -> None:
    arguments = ("console", "--bootstrap-server", address, "--listen", "127.0.0.1:0")
    process = start(*arguments, "--registry", "http://127.0.0.1:1")
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[1]
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/api/subjects", timeout=PATIENCE)
        with refused.value as answer:
            assert "no schema registry answers at http://127.0.0.1:1 " in json.load(answer)["error"]
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE) == ("", "")
    finally:
        process.kill()
        process.wait()
    wrong = ottla(*arguments, "--registry", "nowhere")
    assert (wrong.status, "url = 'nowhere': must begin with http" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--console", "nowhere"), "invalid value 'nowhere' for --console: expected HOST:PORT"),
        (
            ("--console", "127.0.0.1:0", "--set", "listener.security.protocol.map=PLAINTEXT:SASL_PLAINTEXT"),
            "start `ottla console --command-config FILE` separately",
        ),
    ],
)
def test_an_invalid_console_setting_of_a_broker_is_one_clear_error(arguments: tuple[str, ...], sentence: str) -> None:
    refused = ottla("broker", "--listen", "127.0.0.1:0", *arguments)
    assert refused.status == 2
    assert sentence in refused.err


def test_a_console_port_of_a_broker_in_use_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        refused = ottla("broker", "--listen", "127.0.0.1:0", "--console", taken)
    assert refused.status == 1
    assert (
        f"cannot listen on {taken}: the port is taken by another process: choose another with --console, or 0"
        in refused.err
    )


def test_a_broker_without_the_extra_names_the_packages_of_the_console(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_process, "find_spec", lambda package: None)
    with pytest.raises(MissingExtraError, match=r"starlette, .* pip install 'ottla\[console\]'"):
        console_process.ChildServer(console_process.CONSOLE, "127.0.0.1:0", BrokerConfig())


def test_without_a_broker_the_page_reports_it(address: str) -> None:
    process = start("console", "--bootstrap-server", "127.0.0.1:1", "--listen", "127.0.0.1:0")
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[1]
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/api/overview", timeout=PATIENCE)
        with refused.value as answer:
            assert b"127.0.0.1:1" in answer.read()
    finally:
        process.kill()
        process.communicate()


def test_pipelines_are_shown_as_their_status_is_printed(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(PIPELINE, encoding="utf-8")
    desk = PipelineDesk(tmp_path)
    assert desk.status() == json.loads(ottla("pipeline", "status", tmp_path, "--json").out)
    assert [(each["name"], each["state"]) for each in desk.status()] == [("copy", "new")]
    with pytest.raises(ConfigError, match=r"there is no pipeline 'copies' in .*, only copy"):
        desk.resend("copies")
    with pytest.raises(ConfigError, match="pipeline 'copy' has no dead letters"):
        desk.resend("copy")


def test_an_invalid_console_address_is_one_clear_error() -> None:
    refused = ottla("console", "--listen", "nowhere")
    assert refused.status == 2
    assert "invalid value 'nowhere' for --listen: expected HOST:PORT" in refused.sentence


def test_a_console_port_in_use_is_one_clear_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = ottla("console", "--listen", f"127.0.0.1:{port}")
    assert refused.status == 1
    assert (
        f"127.0.0.1:{port}: the port is taken by another process: choose another with --listen, or 0"
        in refused.sentence
    )
