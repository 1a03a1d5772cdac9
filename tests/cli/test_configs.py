"""`ottla configs`, and the sources of a command's cluster address."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla import Admin
from ottla.cli.config_changes import config_changes
from ottla.cli.main import main
from ottla.cli.options import ADDRESS_VARIABLE
from ottla.client.admin import NewTopic

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(address: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """`ottla …` at the broker, in this process."""

    def run_it(*words: object) -> tuple[int, str, str]:
        status = main([*map(str, words), "--bootstrap-server", address])
        return (status, *capsys.readouterr())

    return run_it


@pytest.fixture
def orders(address: str, topic: str) -> str:
    """An existing topic."""
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(topic)])
    return topic


def test_configs_are_set_described_and_deleted(run: Run, orders: str) -> None:
    of_it = ("--topic", orders)
    assert run("configs", "describe", *of_it) == (0, f"topic {orders}: nothing is set (--all shows defaults)\n\n", "")
    wanted = "retention.ms=3600000,cleanup.policy=[compact,delete]"
    assert run("configs", "alter", *of_it, "--add-config", wanted) == (0, "", "")
    _, out, _ = run("configs", "describe", *of_it)
    assert [line.split() for line in out.splitlines()[1:4]] == [
        ["CONFIG", "VALUE", "SOURCE"],
        ["cleanup.policy", "compact,delete", "DYNAMIC_TOPIC_CONFIG"],
        ["retention.ms", "3600000", "DYNAMIC_TOPIC_CONFIG"],
    ]
    assert run("configs", "alter", *of_it, "--delete-config", "retention.ms,cleanup.policy") == (0, "", "")
    assert "nothing is set" in run("configs", "describe", *of_it)[1]


def test_client_metrics_subscriptions_are_set_and_described(run: Run, topic: str) -> None:
    of_it = ("--client-metrics", topic)  # as the console's page and docs/metrics.md say it
    wanted = "metrics=[org.apache.kafka.producer.,org.apache.kafka.consumer.],interval.ms=30000,match=[client_id=no-.*]"
    assert run("configs", "alter", *of_it, "--add-config", wanted) == (0, "", "")
    status, out, _ = run("configs", "describe", *of_it, "--json")
    reported = {row["config"]: row["value"] for row in json.loads(out)}
    assert (status, reported["interval.ms"], reported["match"]) == (0, "30000", "client_id=no-.*")
    assert run("configs", "alter", *of_it, "--delete-config", "metrics,interval.ms,match") == (0, "", "")


def test_the_options_of_kafkas_tools_are_accepted_and_all_shows_defaults(run: Run, orders: str) -> None:
    _, out, _ = run("configs", "describe", "--entity-type", "topics", "--entity-name", orders, "--all", "--json")
    rows = {row["config"]: row for row in json.loads(out)}
    assert rows["compression.type"] == {
        "type": "topic",
        "name": orders,
        "config": "compression.type",
        "value": "producer",
        "source": "DEFAULT_CONFIG",
    }


def test_an_entity_type_without_a_name_means_all_entities(run: Run, orders: str) -> None:
    _, topics, _ = run("configs", "describe", "--entity-type", "topics")
    assert f"topic {orders}: nothing is set" in topics
    _, brokers, _ = run("configs", "describe", "--entity-type", "brokers", "--all", "--json")
    assert {row["name"] for row in json.loads(brokers)} == {"1"}


def test_a_group_has_configs_too(run: Run, orders: str) -> None:
    of_it = ("--group", f"group-{orders}")
    assert run("configs", "alter", *of_it, "--add-config", "consumer.session.timeout.ms=50000") == (0, "", "")
    assert "consumer.session.timeout.ms" in run("configs", "describe", *of_it)[1]


def test_a_file_has_the_configs_to_set(run: Run, orders: str, tmp_path: Path) -> None:
    file = tmp_path / "topic.properties"
    file.write_text("retention.ms=1000\n")
    assert run("configs", "alter", "--topic", orders, "--add-config-file", file) == (0, "", "")
    assert "1000" in run("configs", "describe", "--topic", orders)[1]


def test_validate_only_changes_nothing(run: Run, orders: str) -> None:
    change = ("configs", "alter", "--topic", orders, "--validate-only", "--add-config")
    assert run(*change, "retention.ms=1000") == (0, "", "")
    status, _, err = run(*change, "retention.ms=soon")
    assert (status, "retention.ms" in err) == (1, True)
    assert "nothing is set" in run("configs", "describe", "--topic", orders)[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("describe", "no entity given: expected --topic NAME"),
        ("describe --broker one", "invalid broker 'one': expected a number"),
        ("describe --entity-name a", "need --entity-type"),
        ("describe --entity-type topics --entity-default", "--entity-default is for --entity-type brokers"),
        ("alter --topic a", "nothing to alter"),
        ("alter --topic a --add-config b", "invalid value 'b' for --add-config: expected KEY=VALUE"),
        ("alter --topic a --add-config b=1,b=2", "b is set twice"),
        ("alter --topic a --add-config b=1 --delete-config b", "b is both set and deleted"),
        ("alter --topic a --add-config-file /nowhere", "--add-config-file /nowhere: No such file or directory"),
    ],
)
def test_invalid_arguments_are_one_clear_error(run: Run, words: str, sentence: str) -> None:
    status, out, err = run("configs", *words.split())
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("a=1", {"a": "1"}),
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("a=[1,2],b=[3]", {"a": "1,2", "b": "3"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=", {"a": ""}),
        ("a=[", {"a": "["}),
        ("a=x[1,2],b=3", {"a": "x[1,2]", "b": "3"}),
    ],
)
def test_changes_are_read_as_kafka_reads_them(text: str, changes: dict[str, str]) -> None:
    assert config_changes([text], [], {}) == changes


def test_the_cluster_is_found_by_the_environment_and_a_file_wins_over_it(
    address: str, orders: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv(ADDRESS_VARIABLE, address)
    assert main(["topics", "list"]) == 0
    assert orders in capsys.readouterr().out.splitlines()
    monkeypatch.setenv(ADDRESS_VARIABLE, "nowhere:x")
    assert main(["topics", "list"]) == 2
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={address}\n")
    assert main(["topics", "list", "--command-config", str(file)]) == 0


def test_an_unknown_topic_or_config_is_an_error_with_the_closest_name(run: Run, orders: str) -> None:
    def complaint(*words: str) -> str:
        status, _, err = run(*words)
        assert (status, err.count("\n")) == (1, 1)
        return err.rstrip()

    def meant(name: str) -> str:
        return f"; did you mean {name!r}?"

    nearly = f"{orders}s"
    for words in (
        ("topics", "alter", nearly, "--partitions", "2"),
        ("topics", "alter", nearly, "--config", "retention.ms=1"),
        ("topics", "alter", nearly, "--delete-config", "retention.ms"),
        ("configs", "describe", "--topic", nearly),
        ("configs", "alter", "--topic", nearly, "--add-config", "retention.ms=1"),
    ):
        assert complaint(*words).endswith(meant(orders))
    assert complaint("topics", "alter", orders, "--delete-config", "retention.sm") == (
        f"ottla: topic {orders} has no config 'retention.sm'" + meant("retention.ms")
    )
    assert complaint("configs", "alter", "--broker", "1", "--add-config", "log.retentoin.ms=1") == (
        "ottla: broker 1 has no config 'log.retentoin.ms'" + meant("log.retention.ms")
    )
    assert complaint("configs", "alter", "--broker-defaults", "--delete-config", "log.retentoin.ms") == (
        "ottla: no broker has a config 'log.retentoin.ms'" + meant("log.retention.ms")
    )
    assert complaint("configs", "alter", "--group", "g", "--add-config", "consumer.sesion.timeout.ms=9") == (
        "ottla: group g has no config 'consumer.sesion.timeout.ms'" + meant("consumer.session.timeout.ms")
    )


def test_deleting_an_unset_broker_config_succeeds(run: Run) -> None:
    of_a_listener = "listener.name.internal.ssl.keystore.location"
    taken_back = f"log.retention.ms,{of_a_listener}"
    assert run("configs", "alter", "--broker", "1", "--delete-config", taken_back) == (0, "", "")
