"""`--json` of every command that prints results, in one format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from ottla import Admin, Broker, NewTopic, Producer
from ottla.cli.main import main, root
from tests.cli.conftest import ottla, start
from tests.pipelines.file.files import WHOLE

WITHOUT = {
    "acls create": "it prints nothing",
    "broker": "it runs, and says where: `ready HOST:PORT`",
    "cluster add-controller": "it prints one sentence",
    "cluster remove-controller": "it says what it leaves, and asks",
    "cluster start": "it runs, and says where: `ready HOST:PORT`",
    "cluster unregister": "it asks",
    "cluster unregister-controller": "it prints one sentence",
    "completion": "it prints a script for a shell",
    "configs alter": "it prints nothing",
    "console": "it runs, and says where: `ready URL`",
    "context add": "it prints nothing",
    "context remove": "it prints nothing",
    "context use": "it prints nothing",
    "groups delete": "it prints nothing",
    "groups delete-offsets": "it prints nothing",
    "mcp": "what it prints is JSON of the protocol",
    "pipeline dead-letters resend": "it says that it is done",
    "pipeline new-connector": "it says where it has written",
    "pipeline pause": "it says that it is done",
    "pipeline restart": "it says that it is done",
    "pipeline resume": "it says that it is done",
    "pipeline schema": "what it prints is JSON",
    "pipeline stop": "it says that it is done",
    "produce": "it prints nothing; lines of JSON it reads by --format",
    "quotas alter": "it prints nothing",
    "quotas delete": "it asks",
    "records produce": "the same",
    "registry": "it runs, and prints its address: `ready HOST:PORT`",
    "schemas check": "it prints one sentence, and its status is the result",
    "schemas delete": "it prints the deleted versions, one per line",
    "schemas diff": "it prints a difference of two texts",
    "schemas register": "it prints one number, the id",
    "storage format": "it says that it is done",
    "storage random-uuid": "it prints one word, for $(…)",
    "topics alter": "it prints nothing",
    "topics create": "it prints nothing",
    "topics delete": "it prints nothing",
    "transactions abort": "it prints nothing",
    "users add": "it prints nothing",
    "users alter": "it prints nothing",
    "users delete": "it asks",
}
"""Commands that have no `--json`, each with the reason."""
KEY = re.compile(r"[a-z][a-z0-9_]*")
Run = Callable[..., list[dict[str, Any]]]


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command below this one, under the words that call it."""
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from commands(inner, (*path, name))


def has_json(command: click.Command) -> bool:
    return any("--json" in parameter.opts for parameter in command.params)


def test_every_listing_command_has_json_output() -> None:
    assert {path for path, command in commands(root) if not has_json(command)} == set(WITHOUT)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a broker that allows every operation, with a topic, a record and a group."""
    settings: dict[str, Any] = {"authorizer_class_name": "standard", "super_users": "User:ANONYMOUS"}
    with Broker(**settings) as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 2)])
        with Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("orders", b"one", key=b"k", partition=1)
        yield broker.bootstrap_servers


@pytest.fixture
def run(address: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run commands with --json and parse their output."""

    def run_it(*words: str) -> list[dict[str, Any]]:
        assert main([*words, "--json", "--bootstrap-server", address]) == 0
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        assert all(KEY.fullmatch(key) for each in found for key in each)
        return found

    return run_it


def test_topics_are_objects(run: Run) -> None:
    (listed,) = run("topics", "list")
    assert (listed["topic"], listed["internal"]) == ("orders", False)
    first, second = run("topics", "describe", "orders")
    assert first == {
        "topic": "orders",
        "topic_id": listed["topic_id"],
        "partition": 0,
        "leader": 1,
        "replicas": [1],
        "in_sync": [1],
        "first_offset": 0,
        "end_offset": 0,
    }
    assert (second["partition"], second["end_offset"]) == (1, 1)


def test_rules_that_are_deleted_are_objects(run: Run, address: str) -> None:
    of_it = ("--allow-principal", "User:alice", "--operation", "read", "--topic", "orders")
    assert main(["acls", "create", *of_it, "--bootstrap-server", address]) == 0
    (gone,) = run("acls", "delete", *of_it, "--force")
    assert (gone["principal"], gone["operation"], gone["name"]) == ("User:alice", "read", "orders")
    assert run("acls", "list") == []


def test_a_started_reassignment_is_an_object(run: Run) -> None:
    assert run("cluster", "reassign", "--topic", "orders", "--to", "1", "--yes") == []


def test_records_are_lines_of_json(address: str) -> None:
    at = ("--bootstrap-server", address)
    for words in (("consume", "orders", "--from-beginning", "--exit"), ("records", "head", "orders")):
        (line,) = ottla(*words, "--json", *at).out.splitlines()
        assert json.loads(line)["value"] == "one"
    refused = ottla("records", "head", "orders", "--json", "--format", "%s", *at)
    assert (refused.status, "--json and --format '%s' exclude each other" in refused.sentence) == (2, True)


def test_watch_output_is_lines_of_json(address: str) -> None:
    at = ("--bootstrap-server", address)
    traced = start("trace", "consume", "orders", "--group", "billing", "--from-beginning", "--json", *at)
    assert traced.stdout is not None
    try:
        begun = json.loads(traced.stdout.readline())
        assert (begun["event"], begun["text"]) == ("RebalanceStarted", "rebalance started: this member is new")
        assigned = next(each for line in traced.stdout if (each := json.loads(line))["event"] == "Assigned")
        watched = start("groups", "watch", "billing", "--json", *at)
        assert watched.stdout is not None
        first = json.loads(watched.stdout.readline())
        watched.kill()
        watched.communicate()
    finally:
        traced.kill()
        traced.communicate()
    assert begun["at_ms"] <= assigned["at_ms"] <= first["at_ms"]
    del first["at_ms"]
    assert first == {"group": "billing", "state": "Stable", "members": 1, "text": "Stable, 1 member"}


def test_files_that_were_written_are_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (("authority",), ("server",), ("client", "alice")):
        assert main(["certificates", words[0], str(tmp_path), *words[1:], "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert found
        assert all(Path(each["file"]).exists() for each in found)


def test_mistakes_in_pipelines_are_objects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(WHOLE, encoding="utf-8")
    assert main(["pipeline", "validate", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    file.write_text(WHOLE.replace("MaskField", "MakeField"), encoding="utf-8")
    assert main(["pipeline", "validate", str(file), "--json"]) == 1
    message = "unknown type of transform 'MakeField'; did you mean 'MaskField'?"
    assert json.loads(capsys.readouterr().out) == [{"file": str(file), "line": 8, "column": 9, "mistake": message}]


def test_remains_of_pipelines_are_printed_as_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.yaml").write_text(WHOLE, encoding="utf-8")
    assert main(["pipeline", "clean", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_directory_without_damage_needs_no_repairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(data_dir=tmp_path):
        pass
    assert main(["log", "repair", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
