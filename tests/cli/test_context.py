"""`ottla context`, and the choice of the cluster that a command connects to."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, Broker, NewTopic
from ottla.cli.contexts.contexts import ClusterContext, Contexts, contexts_file, read_contexts, write_contexts
from ottla.cli.main import main
from tests.cli.conftest import OTTLA, PATIENCE

Run = Callable[..., tuple[int, str, str]]
SECRET = "s3cr3t"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_contexts: None) -> Path:
    """The folder of this test's contexts."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("OTTLA_BOOTSTRAP_SERVERS", raising=False)
    return tmp_path


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """`ottla …` in this process."""

    def run_it(*words: object) -> tuple[int, str, str]:
        return (main(list(map(str, words))), *capsys.readouterr())

    return run_it


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[str, str]]:
    """Two clusters, each with a topic that identifies it."""
    with Broker() as first, Broker() as second:
        for number, broker in enumerate((first, second), 1):
            with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
                admin.create_topics([NewTopic(f"of-{number}")])
        yield first.bootstrap_servers, second.bootstrap_servers


@pytest.fixture
def two(run: Run, brokers: tuple[str, str]) -> tuple[str, str]:
    """Contexts for both clusters; the first is the current one."""
    assert run("context", "add", "one", "--bootstrap-server", brokers[0], "--use")[0] == 0
    assert run("context", "add", "two", "--bootstrap-server", brokers[1])[0] == 0
    return brokers


def topics(run: Run, *words: object) -> str:
    status, out, err = run("topics", "list", *words)
    assert (status, err) == (0, "")
    return out.strip()


def test_the_current_context_is_used_until_another_is_chosen(run: Run, two: tuple[str, str]) -> None:
    assert topics(run) == "of-1"
    assert run("context", "use", "two") == (0, "", "")
    assert topics(run) == "of-2"
    _, out, _ = run("context", "list", "--json")
    assert [(each["name"], each["current"]) for each in json.loads(out)] == [("one", False), ("two", True)]
    assert run("context", "use", "--none")[0] == 0
    assert not any(each["current"] for each in json.loads(run("context", "list", "--json")[1]))


def test_the_most_specific_source_of_the_address_wins(
    run: Run, two: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = two
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={second}\n")
    assert topics(run, "--context", "two") == "of-2"
    assert topics(run, "--bootstrap-server", second) == "of-2"
    assert topics(run, "--command-config", file) == "of-2"
    assert topics(run, "--command-config", file, "--context", "one") == "of-1"
    monkeypatch.setenv("OTTLA_CONTEXT", "two")
    assert topics(run) == "of-2"
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVERS", first)
    assert topics(run) == "of-1"
    assert topics(run, "--command-config", file) == "of-2"
    assert topics(run, "--context", "two") == "of-2"
    both = run("topics", "list", "--context", "two", "--bootstrap-server", first)
    assert (both[0], "--context two and --bootstrap-server both give the address" in both[2]) == (2, True)


def test_a_context_brings_its_login_and_an_address_does_not(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", users={"alice": SECRET}) as broker:
        file = tmp_path / "alice.properties"
        file.write_text("sasl.username=alice\nsasl.password=${env:OF_ALICE}\n")
        ways = ("--set", "security.protocol=SASL_PLAINTEXT", "--set", "sasl.mechanism=SCRAM-SHA-256")
        where = ("--bootstrap-server", broker.bootstrap_servers)
        added = run("context", "add", "alice", *where, "--command-config", file, *ways, "--use")
        assert added == (0, "", "")
        monkeypatch.setenv("OF_ALICE", SECRET)
        assert run("topics", "list") == (0, "", "")
        status, _, err = run("topics", "list", *where, "--set", "default.api.timeout.ms=2000")
        assert (status, "asks for a login" in err) == (1, True)
        other = tmp_path / "other.properties"
        other.write_text("sasl.username=bob\nsasl.password=x\ndefault.api.timeout.ms=2000\n")
        assert run("topics", "list", "--command-config", other)[0] == 1
        monkeypatch.delenv("OF_ALICE")
        assert "the environment variable OF_ALICE is not set; set it" in run("topics", "list")[2]


def test_a_secret_is_rejected_and_not_printed(run: Run, home: Path) -> None:
    to = ("context", "add", "prod", "--bootstrap-server", "a:1")
    for setting in ("sasl.password", "ssl.key.password", "sasl.jaas.config", "ssl.key.pem"):
        status, _, err = run(*to, "--set", f"{setting}={SECRET}")
        assert (status, SECRET in err, "${env:NAME}" in err) == (2, False, True)
    assert not (home / "ottla").exists()
    assert run(*to, "--set", "sasl.password=${env:PASSWORD}", "--set", "sasl.username=u") == (0, "", "")
    assert "sasl.password      ${env:PASSWORD}" in run("context", "show", "prod")[1]


def test_a_saved_context_is_readable_by_its_owner_only_and_can_be_deleted(run: Run, two: tuple[str, str]) -> None:
    file = contexts_file()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) & 0o077 == 0
    assert [each.name for each in file.parent.iterdir()] == ["contexts.json"]
    again = run("context", "add", "one", "--bootstrap-server", two[1])
    assert (again[0], "context 'one' exists already: add --replace" in again[2]) == (1, True)
    assert run("context", "add", "one", "--bootstrap-server", two[1], "--replace")[0] == 0
    assert topics(run) == "of-2"
    assert run("context", "remove", "one") == (0, "", "it was the current context; there is none now\n")
    assert run("context", "show")[2].startswith("ottla: there is no current context: give a name")


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        ("topics list --context oen", 1, "--context: unknown context 'oen'; did you mean 'one'?"),
        ("context use tow", 1, "unknown context 'tow'; did you mean 'two'?"),
        ("context remove prod", 1, "unknown context 'prod'; there are one, two"),
        ("context use", 2, "expected the name of a context, or --none"),
        ("context add p", 2, "missing option '--bootstrap-server'"),
        ("context add a/b --bootstrap-server a:1", 2, "expected letters"),
        ("context add p --bootstrap-server a:x", 2, "bootstrap.servers = 'a:x': write host:port"),
        ("context add p --bootstrap-server a:1 --set sasl.usrname=u", 2, "did you mean 'sasl.username'?"),
        ("context add p --bootstrap-server a:1 --set bootstrap.servers=b:1", 2, "use --bootstrap-server"),
        ("context add p --bootstrap-server a:1 --command-config nowhere", 2, "No such file"),
    ],
)
def test_mistakes_are_clear_error_messages(
    run: Run, two: tuple[str, str], command: str, status: int, words: str
) -> None:
    found, out, err = run(*command.split())
    assert (found, out, err.count("\n")) == (status, "", 1)
    assert words in err


def test_an_unknown_context_in_the_environment_is_a_clear_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTTLA_CONTEXT", "prod")
    assert run("topics", "list") == (1, "", "ottla: OTTLA_CONTEXT: unknown context 'prod'; there are none yet\n")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"current": "a", "contexts": {}}',
        b'{"current": null, "contexts": {"a": 1}}',
        b'{"current": null, "contexts": {"a": {"bootstrap.servers": 1}}}',
        b'{"current": null, "contexts": {"a": {"bootstrap.servers": "a:1", "settings": {"x": 1}}}}',
        b'{"current": null, "contexts": {"a": {}}}',
    ],
)
def test_a_damaged_file_is_one_error_for_commands_that_need_it(
    run: Run, content: bytes, brokers: tuple[str, str]
) -> None:
    file = contexts_file()
    file.parent.mkdir()
    file.write_bytes(content)
    for command in (("topics", "list"), ("context", "list"), ("context", "add", "p", "--bootstrap-server", "a:1")):
        status, out, err = run(*command)
        assert (status, out, err.count("\n")) == (1, "", 1)
        assert f"the contexts in {file} are damaged (" in err
    assert file.read_bytes() == content
    assert topics(run, "--bootstrap-server", brokers[0]) == "of-1"


def test_a_folder_that_cannot_be_written_is_one_clear_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file" / "below"))
    status, out, err = run("context", "add", "p", "--bootstrap-server", "a:1")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("ottla: cannot read the contexts in ")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "contexts.json"
    before = Contexts({"a": ClusterContext("a", "a:1")}, "a")
    write_contexts(file, before)
    blocked = tmp_path / "blocked" / "contexts.json"
    blocked.mkdir(parents=True)  # what is to be replaced is a folder
    with pytest.raises(Exception, match=r"cannot write the contexts to .*XDG_CONFIG_HOME"):
        write_contexts(blocked, before)
    assert list(blocked.parent.iterdir()) == [blocked]
    assert read_contexts(file) == before


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"XDG_CONFIG_HOME": "/etc/xdg"}, Path("/etc/xdg")),
        ({"XDG_CONFIG_HOME": "relative"}, Path.home() / ".config"),
        ({}, Path.home() / ".config"),
    ],
)
def test_contexts_are_stored_in_the_xdg_config_folder(environment: dict[str, str], folder: Path) -> None:
    assert contexts_file(environment) == folder / "ottla" / "contexts.json"


@pytest.mark.parametrize(
    ("words", "offered"),
    [("ottla context use t", {"two"}), ("ottla topics list --context ''", {"one", "two"})],
)
def test_names_are_completed(words: str, offered: set[str], two: tuple[str, str]) -> None:
    given = words.replace("''", "")
    at = str(len(words.split()) - 1)
    asked: dict[str, Any] = {**os.environ, "_OTTLA_COMPLETE": "bash_complete", "COMP_WORDS": given, "COMP_CWORD": at}
    run = [OTTLA[0], "-c", "from ottla.cli.main import main; main()"]
    found = subprocess.run(run, env=asked, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert {line.partition(",")[2] for line in found.stdout.splitlines()} == offered, found


def test_names_are_not_completed_from_a_damaged_file(two: tuple[str, str]) -> None:
    contexts_file().write_text("{")
    asked = {**os.environ, "_OTTLA_COMPLETE": "bash_complete", "COMP_WORDS": "ottla context use t", "COMP_CWORD": "3"}
    run = [OTTLA[0], "-c", "from ottla.cli.main import main; main()"]
    found = subprocess.run(run, env=asked, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (found.stdout.strip(), found.stderr) == ("", "")
