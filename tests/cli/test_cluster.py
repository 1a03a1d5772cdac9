"""`ottla cluster`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from ottla import Admin
from ottla.cli.clusters.members import COPIES_NOT, directory_of, place_of, remaining_quorum_sentence, voters_of
from ottla.cli.clusters.moves import result_sentence
from ottla.cli.clusters.quorum import format_age
from ottla.cli.clusters.rows import PARTITIONS, broker_rows, partition_rows, totals_of
from ottla.cli.main import main
from ottla.cli.tables import format_size, format_table, to_objects
from ottla.client.admin import NewTopic, QuorumInfo, QuorumReplicaState
from ottla.model import Node, PartitionInfo

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(address: str, capsys: pytest.CaptureFixture[str]) -> Run:
    """`ottla cluster …` at the broker, in this process."""

    def run_it(*words: object) -> tuple[int, str, str]:
        status = main(["cluster", *map(str, words), "--bootstrap-server", address])
        return (status, *capsys.readouterr())

    return run_it


@pytest.fixture
def orders(address: str, topic: str) -> str:
    """A topic of two partitions."""
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(topic, 2)])
    return topic


def partition(number: int, leader: int, replicas: tuple[int, ...], in_sync: tuple[int, ...]) -> PartitionInfo:
    return PartitionInfo("orders", number, leader, 0, replicas, in_sync)


ILL = [
    partition(0, 1, (1, 2), (1, 2)),
    partition(1, 1, (2, 1), (1, 2)),
    partition(2, 1, (1, 3), (1,)),
    partition(3, -1, (3,), (3,)),
]


def test_a_healthy_cluster_is_reported_as_healthy(run: Run, orders: str, address: str) -> None:
    status, out, err = run("describe")
    assert (status, err) == (0, "")
    assert "1 broker," in out
    assert out.splitlines()[0].endswith("all well")
    assert [line.split()[:3] for line in out.splitlines()[2:]] == [["BROKER", "ADDRESS", "RACK"], ["1", address, "-"]]


def test_a_feature_level_is_downgraded_and_upgraded_and_listed(run: Run) -> None:
    def level(*words: str) -> int:
        rows = json.loads(run("features", "--json", *words)[1])
        return int(next(each["finalized"] for each in rows if each["feature"] == "transaction.version"))

    assert level("--downgrade", "transaction.version=1") == 1
    assert level("--upgrade", "transaction.version=2") == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--upgrade", "group.version"), "expected KEY=VALUE"),
        (("--upgrade", "group.version=one"), "--upgrade group.version=one: expected a number as level, such as 1"),
        (("--upgrade", "a=1", "--downgrade", "a=0"), "a has both --upgrade and --downgrade"),
        (("--upgrade", "other.version=1"), "this broker knows no such feature"),
    ],
)
def test_an_unsupported_feature_level_is_an_error(run: Run, words: tuple[str, ...], says: str) -> None:
    status, _, err = run("features", *words)
    assert status != 0
    assert says in err


def test_json_output_is_complete(run: Run, orders: str) -> None:
    found = json.loads(run("describe", "--json")[1])
    assert found == json.loads(run("status", "--json")[1])
    assert (found["controller"], found["offline"], found["not_well"]) == (1, 0, [])
    assert found["brokers"][0]["leads"] == found["partitions"] >= 2


def test_leaders_and_lagging_replicas_are_counted_for_each_broker() -> None:
    rows = broker_rows([Node(1, "a", 9), Node(2, "b", 9, "east")], ILL)
    assert rows == [(1, "a:9", None, 3, 2, 3, 0), (2, "b:9", "east", 0, 1, 2, 0), (3, "(away)", None, 0, 1, 2, 1)]


def test_a_partition_in_json_is_its_topic_and_its_number() -> None:
    worst, *_ = to_objects(PARTITIONS, partition_rows(ILL))
    assert worst == {
        "topic": "orders", "partition": 3, "leader": None, "replicas": (3,), "isr": (3,), "state": "no leader"
    }  # fmt: skip
    assert format_table(PARTITIONS, partition_rows(ILL)).splitlines()[1].split()[0] == "orders-3"


def test_the_worst_partitions_come_first() -> None:
    assert [(str(row[0]), row[4]) for row in partition_rows(ILL)] == [
        ("orders-3", "no leader"),
        ("orders-2", "under-replicated"),
        ("orders-1", "not the preferred leader"),
    ]
    assert totals_of(ILL) == (4, 1, 1, 1)
    assert totals_of(ILL).sentence().startswith("4 partitions: 1 without a leader, 1 under-replicated")


def test_directories_and_copies_have_sizes(run: Run, orders: str) -> None:
    (directory,) = json.loads(run("log-dirs", "--json")[1])
    assert (directory["broker"], directory["copies"] >= 2, directory["total"] > 0) == (1, True, True)
    copies = json.loads(run("log-dirs", "--topic", orders, "--json")[1])
    assert [(row["topic"], row["partition"], row["size"]) for row in copies] == [(orders, 0, 0), (orders, 1, 0)]
    assert run("log-dirs")[1].splitlines()[0].split()[:3] == ["BROKER", "DIRECTORY", "COPIES"]
    assert run("log-dirs", "--topic", f"no-{orders}")[0] == 1


def test_a_leader_that_is_already_preferred_is_not_elected(run: Run, orders: str) -> None:
    same = "no election was needed: the leaders are already as requested\n"
    assert run("elect", "--topic", orders) == (0, "", same)
    assert run("elect", "--topic", orders, "--json") == (0, "[]\n", same)


def test_an_unclean_election_needs_confirmation(run: Run, orders: str) -> None:
    status, out, err = run("elect", "--topic", orders, "--election-type", "unclean")
    assert (status, out) == (1, "")
    assert err == "ottla: nothing was done: there is no terminal for the confirmation; add --yes\n"


def test_a_reassignment_to_the_current_replicas_moves_nothing(run: Run, orders: str, tmp_path: Path) -> None:
    same = (0, "", "nothing to move: the replicas are already as requested\n")
    assert run("reassign", "--topic", f"{orders}:1", "--to", 1, "--yes") == same
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"partitions": [{"topic": orders, "partition": 0, "replicas": [1]}]}))
    assert run("reassign", "--reassignment-json-file", plan) == same
    assert run("reassign", "--cancel") == same
    assert run("reassignments") == (0, "", "no move is under way\n")
    assert run("reassignments", "--json") == (0, "[]\n", "")


def test_a_move_to_a_directory_starts_or_reports_the_reason(run: Run, orders: str, tmp_path: Path) -> None:
    status, _, err = run("reassign", "--topic", f"{orders}:0", "--broker", 1, "--log-dir", "/elsewhere", "--yes")
    assert (status, err) == (1, "ottla: LOG_DIR_NOT_FOUND: broker 1 has no log directory '/elsewhere'\n")
    (here,) = {each["directory"] for each in json.loads(run("log-dirs", "--topic", orders, "--json")[1])}
    same = (0, "", "no replica is moved to another directory: all are in place or on their way\n")
    assert run("reassign", "--topic", orders, "--broker", 1, "--log-dir", here) == same
    plan = tmp_path / "plan.json"
    moved = {"topic": orders, "partition": 0, "replicas": [1], "log_dirs": ["/elsewhere"]}
    plan.write_text(json.dumps({"partitions": [moved]}))
    status, out, err = run("reassign", "--reassignment-json-file", plan)
    assert [line.split() for line in out.splitlines()] == [
        ["PARTITION", "BROKER", "FROM", "TO"],
        [f"{orders}-0", "1", here, "/elsewhere"],
    ]
    assert (status, "add --yes" in err) == (1, True)


def test_a_reassignment_shows_its_plan_and_asks_for_confirmation(run: Run, orders: str) -> None:
    status, out, err = run("reassign", "--topic", f"{orders}:1", "--to", "1,2")
    assert [line.split() for line in out.splitlines()] == [["PARTITION", "FROM", "TO"], [f"{orders}-1", "1", "1,2"]]
    assert (status, "add --yes" in err) == (1, True)
    status, _, err = run("reassign", "--topic", orders, "--to", "1,2", "--yes")
    assert (status, err.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("elect", "expected --topic"),
        ("elect --topic a --all-topic-partitions", "or --all-topic-partitions"),
        ("reassign", "expected --topic with --to"),
        ("reassign --to 1", "expected --topic with --to"),
        ("reassign --topic a --log-dir /d", "with --broker and --log-dir"),
        ("reassign --topic a --broker 1 --to 1", "with --broker and --log-dir"),
        ("reassign --broker 1 --log-dir /d", "expected --topic"),
        ("reassign --topic a --to 1,x", "invalid value '1,x' for --to: expected distinct broker ids"),
        ("reassign --topic a --to 1,1", "expected distinct broker ids"),
        ("reassign --reassignment-json-file /nowhere", "/nowhere: No such file or directory"),
    ],
)
def test_invalid_arguments_are_one_clear_error(run: Run, words: str, sentence: str) -> None:
    status, out, err = run(*words.split())
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


@pytest.mark.parametrize(
    "plan",
    [
        "",
        "[]",
        "{}",
        '{"partitions": 1}',
        '{"partitions": [{"topic": "a", "partition": 0, "replicas": []}]}',
        '{"partitions": [{"topic": "a", "partition": true, "replicas": [1]}]}',
        '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": ["/d", "/e"]}]}',
        '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": [1]}]}',
    ],
)
def test_a_file_that_is_no_plan_is_an_error_that_shows_the_format(run: Run, plan: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(plan)
    status, _, err = run("reassign", "--reassignment-json-file", file)
    assert (status, "is not a valid plan" in err, "expected {" in err) == (2, True, True)


def test_sizes_and_times_are_read_at_a_glance() -> None:
    assert [format_size(n) for n in (None, 0, 999, 1_000, 999_960, 1_500_000)] == [
        None,
        "0 B",
        "999 B",
        "1.0 kB",
        "1.0 MB",
        "1.5 MB",
    ]
    assert [format_age(100_000, at) for at in (None, -1, 99_500, 100_500, 40_000)] == [
        None,
        None,
        "0.5 s ago",
        "0.0 s ago",
        "1 min ago",
    ]


def replica(number: int) -> QuorumReplicaState:
    return QuorumReplicaState(number, f"directory-of-{number}", 10, None, None)


def quorum_of(*voters: int, observers: tuple[int, ...] = ()) -> QuorumInfo:
    return QuorumInfo(voters[0], 1, 10, tuple(map(replica, voters)), tuple(map(replica, observers)), {})


@pytest.mark.parametrize(
    ("voters", "sentence"),
    [
        ((1,), "controller 1 votes alone: there is no other that could decide"),
        ((1, 2), "controller 2 will vote, and none of them may be lost"),
        ((3, 1, 2), "controllers 2, 3 will vote, and none of them may be lost"),
        ((1, 2, 3, 4), "controllers 2, 3, 4 will vote, and 1 of them may be lost"),
    ],
)
def test_the_number_of_tolerated_voter_failures_is_printed(voters: tuple[int, ...], sentence: str) -> None:
    assert remaining_quorum_sentence(1, quorum_of(*voters)) == sentence


def test_the_voters_and_how_many_of_them_may_fail_are_printed() -> None:
    assert voters_of(quorum_of(1)) == "voters: 1 (leader); none of them may fail"
    assert voters_of(quorum_of(2, 3, 1)) == "voters: 1, 2 (leader), 3; 1 of them may fail"


def test_a_started_or_cancelled_reassignment_is_reported() -> None:
    assert (
        result_sentence(1, cancel=False)
        == "started for 1 partition; ottla cluster reassignments shows what is under way"
    )
    assert result_sentence(2, cancel=True) == "stopped the moves of 2 partitions"


def test_the_directory_of_a_controller_is_found_in_the_quorum_or_reported_missing() -> None:
    assert directory_of(7, quorum_of(1, observers=(7,)).observers, COPIES_NOT) == "directory-of-7"
    with pytest.raises(
        click.ClickException, match=r"no controller 9 copies the metadata here; start it .* \(there: 7\)"
    ):
        directory_of(9, quorum_of(1, observers=(7,)).observers, COPIES_NOT)


@pytest.mark.parametrize("address", ["", "host", "host:", ":9093", "host:0", "host:65536", "host:٣"])
def test_an_invalid_address_is_rejected_before_any_request(run: Run, address: str) -> None:
    status, _, err = run("add-controller", 7, "--address", address)
    assert status == 2
    assert "must be HOST:PORT" in err


def test_an_address_may_be_an_ipv6_one() -> None:
    assert place_of("[::1]:9093") == ("::1", 9093)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("add-controller", 7, "--address", "h:1"), "no controller 7 copies the metadata here"),
        (("add-controller", 7, "--address", "h:1", "--directory-id", "A" * 22), "is a cluster of its own"),
        (("remove-controller", 7), "no controller 7 votes here (there: 1)"),
        (("remove-controller", 1), "there is no terminal for the confirmation; add --yes"),
        (("remove-controller", 1, "--yes"), "the only one that votes: stop it instead"),
        (("unregister", 7), "there is no terminal for the confirmation; add --yes"),
        (("unregister", 7, "--yes"), "no broker 7 is registered"),
        (("unregister", 1, "--yes"), "broker 1 is running, and would end"),
        (("unregister-controller", 7), "no controller 7 is registered"),
        (("unregister-controller", 1), "controller 1 votes: stop it and remove it first"),
    ],
)
def test_a_broker_that_is_a_cluster_of_its_own_keeps_its_members(
    run: Run, words: tuple[object, ...], sentence: str
) -> None:
    status, out, err = run(*words)
    assert (status, out) == (1, "")
    assert sentence in err
