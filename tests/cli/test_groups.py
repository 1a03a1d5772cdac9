"""`ottla groups`, run in this process if possible."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from ottla import Admin, Consumer, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from ottla.cli.groups.watch import WatchedGroup
from ottla.cli.main import main
from tests.cli.conftest import start
from tests.cli.terminal import Terminal

Captured = pytest.CaptureFixture[str]


class Ottla:
    """`ottla groups …` at the broker."""

    def __init__(self, address: str, captured: Captured) -> None:
        self.address = address
        self._captured = captured

    def __call__(self, *words: object, status: int = 0) -> str:
        """Run the command and return its standard output, or its error."""
        self._captured.readouterr()
        assert main([*map(str, words), "--bootstrap-server", self.address]) == status
        out, err = self._captured.readouterr()
        self.aside = err
        return out if status == 0 else err

    def rows(self, *words: object) -> list[list[str]]:
        return [line.split() for line in self(*words).splitlines()]


@pytest.fixture
def run(address: str, capsys: Captured) -> Ottla:
    return Ottla(address, capsys)


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def filled(address: str, topic: str) -> str:
    """A topic of two partitions with ten records each, a second apart."""
    with Admin(bootstrap_servers=address) as admin, Producer(bootstrap_servers=address) as producer:
        admin.create_topics([NewTopic(topic, 2)])
        for n in range(20):
            producer.send(topic, b"v", partition=n % 2, timestamp=1_000_000_000_000 + n // 2 * 1000)
    return topic


@pytest.fixture
def left(address: str, group: str, filled: str) -> str:
    """A group without members that has read four records of partition 0."""
    with Admin(bootstrap_servers=address) as admin:
        admin.alter_consumer_group_offsets(group, {TopicPartition(filled, 0): 4})
    return group


@pytest.fixture
def member(address: str, group: str, filled: str) -> Iterator[Consumer]:
    """A member that has both partitions."""
    with Consumer(bootstrap_servers=address, group_id=group, group_instance_id="i", client_id="app") as consumer:
        consumer.subscribe([filled])
        while len(consumer.assignment()) < 2:
            consumer.poll(0.05)
        yield consumer


def test_groups_are_listed(run: Ottla, left: str) -> None:
    assert left in run("groups", "list").splitlines()
    assert left in run("groups", "list", "--state", "Empty").splitlines()
    assert left not in run("groups", "list", "--state", "Stable").splitlines()
    assert [left, "Classic", "Empty"] in run.rows("groups", "list", "--verbose")
    assert {"group": left, "type": "Classic", "state": "Empty"} in json.loads(run("groups", "list", "--json"))


def test_offsets_and_lag_of_a_group_without_members(run: Ottla, left: str, filled: str) -> None:
    head, row = run.rows("groups", "describe", left)
    assert head == [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ]
    assert row == [left, filled, "0", "4", "10", "6", "-", "-", "-"]
    assert run.aside == f"Consumer group '{left}' has no active members.\n"


def test_owners_are_shown(run: Ottla, member: Consumer, group: str, filled: str) -> None:
    member.commit({TopicPartition(filled, 0): 3})
    _, zero, one = run.rows("groups", "describe", group)
    me = member.group_metadata().member_id
    assert zero == [group, filled, "0", "3", "10", "7", me, "/127.0.0.1", "app"]
    assert one == [group, filled, "1", "-", "10", "-", me, "/127.0.0.1", "app"]
    first, _ = json.loads(run("groups", "describe", group, "--json"))
    assert (first["current_offset"], first["log_end_offset"], first["lag"], first["consumer_id"]) == (3, 10, 7, me)


def test_members_and_state_are_shown(run: Ottla, member: Consumer, group: str, filled: str) -> None:
    me = member.group_metadata().member_id
    _, row = run.rows("groups", "describe", group, "--members", "--verbose")
    assert row == [group, me, "i", "/127.0.0.1", "app", "2", "-", f"{filled}:0,1", "-", "-"]
    _, state = run.rows("groups", "describe", group, "--state")
    assert state == [group, run.address, "(1)", "range", "Stable", "1"]


def test_a_missing_assignor_is_null(run: Ottla, left: str) -> None:
    (state,) = json.loads(run("groups", "describe", left, "--state", "--json"))
    assert (state["assignment_strategy"], state["state"]) == (None, "Empty")


@pytest.fixture
def worked(address: str, group: str, filled: str) -> str:
    """The group of a work loop."""
    commits = {
        TopicPartition(filled, 0): OffsetAndMetadata(3, "ottla.work/1:;running=2,waiting=5,retrying=1,oldest=1000"),
        TopicPartition(filled, 1): OffsetAndMetadata(10, "ottla.work/1:;dead=4"),
    }
    with Consumer(bootstrap_servers=address, group_id=group) as consumer:
        consumer.commit(commits)
    return group


def test_the_group_of_a_work_loop_has_a_second_table(run: Ottla, worked: str, filled: str) -> None:
    rows = run.rows("groups", "describe", worked)
    assert rows[3][3:9] == ["RUNNING", "WAITING", "RETRYING", "DEAD-LETTERS", "OLDEST", "(S)"]
    assert rows[4][:7] == [worked, filled, "0", "2", "5", "1", "0"]
    assert int(rows[4][7]) > 1_700_000_000
    assert rows[5] == [worked, filled, "1", "0", "0", "0", "4", "-", "-"]
    found = json.loads(run("groups", "describe", worked, "--work", "--json"))
    assert (found[0]["running"], found[1]["dead_letters"], found[1]["oldest_s"]) == (2, 4, None)
    assert "log_end_offset" in json.loads(run("groups", "describe", worked, "--json"))[0]
    assert "exclude each other" in run("groups", "describe", worked, "--work", "--state", status=2)


def test_watching_a_work_loop_shows_its_numbers(address: str, worked: str) -> None:
    with Admin(bootstrap_servers=address) as admin:
        watched = WatchedGroup(admin, worked)
        watched.refresh(0.0)
        console = Console(width=200, file=StringIO())
        console.print(watched.draw())
        assert isinstance(console.file, StringIO)
        line = console.file.getvalue().splitlines()[1]
    assert line.startswith("work  running 2 · waiting 5 · retrying 1 · dead letters 4 · oldest 1")


def test_all_groups_are_described(run: Ottla, left: str) -> None:
    assert left in [row[0] for row in run.rows("groups", "describe", "--all-groups")]


@pytest.mark.parametrize(
    ("way", "offsets"),
    [
        ("--to-earliest", [0, 0]),
        ("--to-latest", [10, 10]),
        ("--to-current", [4, 10]),
        ("--to-offset 7", [7, 7]),
        ("--to-offset 70", [10, 10]),
        ("--to-datetime 2001-09-09T01:46:43.000", [3, 3]),
        ("--to-datetime 2001-09-09T03:46:43.000+02:00", [3, 3]),
        ("--to-datetime 2038-01-01T00:00:00.000", [10, 10]),
        ("--by-duration P365D", [10, 10]),
        ("--by-duration P20000DT1H2M3.5S", [0, 0]),
    ],
)
def test_offsets_are_moved_in_many_ways(run: Ottla, left: str, filled: str, way: str, offsets: list[int]) -> None:
    head, *rows = run.rows("groups", "reset-offsets", left, "--topic", filled, *way.split(), "--execute")
    assert head == ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
    assert rows == [[left, filled, str(p), str(offset)] for p, offset in enumerate(offsets)]
    assert [row[3] for row in run.rows("groups", "describe", left)[1:]] == [str(offset) for offset in offsets]


@pytest.mark.parametrize(("by", "offset"), [(2, 6), (-3, 1), (-30, 0), (30, 10)])
def test_offsets_are_shifted_within_the_log(run: Ottla, left: str, filled: str, by: int, offset: int) -> None:
    _, row = run.rows("groups", "reset-offsets", left, "--all-topics", "--shift-by", by, "--execute")
    assert row == [left, filled, "0", str(offset)]
    beyond = f"{filled}-0 has no offset {4 + by}, only 0 to 10: using {offset}\n"
    assert run.aside == ("" if offset == 4 + by else beyond)


def test_nothing_changes_without_execute(run: Ottla, left: str, filled: str) -> None:
    run("groups", "reset-offsets", left, "--topic", f"{filled}:0", "--to-latest")
    assert run.aside == "nothing was changed: add --execute to commit the new offsets\n"
    run("groups", "reset-offsets", left, "--topic", f"{filled}:0", "--to-latest", "--dry-run")
    assert run.aside == ""
    assert run.rows("groups", "describe", left)[1][3] == "4"


def test_offsets_are_exported_and_imported_as_a_file(run: Ottla, left: str, filled: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(run("groups", "reset-offsets", left, "--topic", filled, "--to-offset", 2, "--export"))
    assert file.read_text() == f"{filled},0,2\n{filled},1,2\n"
    run("groups", "reset-offsets", f"{left}-2", "--from-file", file, "--execute")
    assert [row[3] for row in run.rows("groups", "describe", f"{left}-2")[1:]] == ["2", "2"]


def test_offsets_and_groups_are_deleted(run: Ottla, left: str, filled: str) -> None:
    run("groups", "reset-offsets", left, "--topic", filled, "--to-latest", "--execute")
    run("groups", "delete-offsets", left, "--topic", f"{filled}:1")
    assert [row[2] for row in run.rows("groups", "describe", left)[1:]] == ["0"]
    run("groups", "delete", left)
    assert left not in run("groups", "list").splitlines()


def test_in_a_terminal_deleting_a_group_lists_it_and_asks_for_confirmation(run: Ottla, left: str, filled: str) -> None:
    run("groups", "reset-offsets", left, "--topic", filled, "--to-latest", "--execute")
    with Terminal("groups", "delete", left, "--bootstrap-server", run.address) as terminal:
        terminal.says("Delete them permanently? [y/N]")
        terminal.says("COMMITTED PARTITIONS")
        terminal.type(b"n\n")
        assert terminal.ends() == 1
    assert left in run("groups", "list").splitlines()
    with Terminal("groups", "delete", left, "--yes", "--bootstrap-server", run.address) as terminal:
        assert terminal.ends() == 0
    assert left not in run("groups", "list").splitlines()


def test_in_a_terminal_deleting_offsets_lists_them_and_asks_for_confirmation(
    run: Ottla, left: str, filled: str
) -> None:
    run("groups", "reset-offsets", left, "--topic", filled, "--to-latest", "--execute")
    words = ("groups", "delete-offsets", left, "--topic", f"{filled}:1", "--bootstrap-server", run.address)
    with Terminal(*words) as terminal:
        terminal.says("Delete them permanently? [y/N]")
        terminal.says("COMMITTED OFFSET")
        terminal.type(b"n\n")
        assert terminal.ends() == 1
    assert len(run.rows("groups", "describe", left)[1:]) == 2
    with Terminal(*words, "--yes") as terminal:
        assert terminal.ends() == 0
    assert len(run.rows("groups", "describe", left)[1:]) == 1


def test_an_active_group_is_not_changed(run: Ottla, member: Consumer, group: str, filled: str) -> None:
    to = ("--topic", filled, "--to-latest", "--execute")
    result = run("groups", "reset-offsets", group, *to, status=1)
    assert result == f"ottla: group '{group}' is Stable: offsets can be reset only while it has no members\n"
    assert f"group '{group}' has members: stop them first" in run("groups", "delete", group, status=1)
    assert "is reading the topic" in run("groups", "delete-offsets", group, "--topic", filled, status=1)


def test_missing_resources_are_named(run: Ottla, group: str, filled: str) -> None:
    for words in (("describe", group), ("delete", group), ("watch", group)):
        assert f"there is no group '{group}'" in run("groups", *words, status=1)
    reset = ("groups", "reset-offsets", group, "--to-latest")
    assert "has committed no offsets: add --topic" in run(*reset, "--all-topics", status=1)
    assert f"topic '{filled}' has no partition 7, only 0 to 1" in run(*reset, "--topic", f"{filled}:7", status=1)
    assert "there is no topic 'no-such'" in run(*reset, "--topic", "no-such", status=1)
    shift = run("groups", "reset-offsets", group, "--shift-by", 1, "--topic", filled, status=1)
    assert "--shift-by needs a committed offset" in shift


def test_an_invalid_offsets_file_is_an_error_with_its_line(run: Ottla, group: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text("t,0,1\nt,zero,1\n")
    result = run("groups", "reset-offsets", group, "--from-file", file, status=1)
    assert result == f"ottla: {file}: line 2 must be TOPIC,PARTITION,OFFSET\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("groups describe", "expected GROUP (may be repeated) or --all-groups"),
        ("groups describe g --members --state", "--members, --state, --work and --topology exclude each other"),
        ("groups reset-offsets g --topic t", "expected exactly one of --to-earliest, --to-latest"),
        ("groups reset-offsets g --topic t --to-latest --to-earliest", "expected exactly one of"),
        ("groups reset-offsets g --to-latest", "no partitions given: expected --topic"),
        ("groups reset-offsets g --topic t --to-latest --dry-run --execute", "exclude each other"),
        ("groups watch g --interval 0", "invalid value for '--interval'"),
        ("groups wach g", "unknown command 'wach'; did you mean 'watch'?"),
        ("trace consume", "missing argument 'TOPIC...'"),
        ("trace consume t --set group.id=g", "group.id cannot be set here: use --group"),
        ("transactions abort t --partition 0", "expected either --start-offset"),
        ("transactions abort t --partition 0 --producer-id 1", "--producer-id needs --producer-epoch"),
    ],
)
def test_contradicting_options_are_rejected(command: str, words: str, capsys: Captured) -> None:
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert words in err


@pytest.mark.parametrize(
    ("way", "value"), [("--by-duration", "7 days"), ("--by-duration", "P"), ("--to-datetime", "soon")]
)
def test_an_invalid_time_is_rejected(run: Ottla, left: str, way: str, value: str) -> None:
    result = run("groups", "reset-offsets", left, "--all-topics", way, value, status=2)
    assert f"{way} '{value}' must be a" in result


def test_watching_reports_members_that_join_and_leave(address: str, group: str, filled: str, member: Consumer) -> None:
    watching = start("groups", "watch", group, "--interval", 0.02, "--bootstrap-server", address)
    assert watching.stdout is not None
    try:
        assert watching.stdout.readline().endswith("Stable, 1 member\n")
        member.close()
        other = Consumer(bootstrap_servers=address, group_id=group, group_instance_id="i", client_id="app")
        other.subscribe([filled])
        while not other.assignment():
            other.poll(0.05)
        assert watching.stdout.readline().endswith("static member i is back under a new id\n")
        other.close()
    finally:
        watching.kill()
        watching.communicate()


def test_the_long_list_has_members_and_lag_of_groups_of_each_type(run: Ottla, filled: str, group: str) -> None:
    share = f"{group}-share"
    with Admin(bootstrap_servers=run.address) as admin:
        admin.alter_consumer_group_offsets(group, {TopicPartition(filled, 0): 4, TopicPartition(filled, 1): 10})
        admin.alter_share_group_offsets(share, {TopicPartition(filled, 0): 7})
    rows = {row[0]: row[1:] for row in run.rows("groups", "list", "--long")}
    assert rows["GROUP"] == ["TYPE", "STATE", "MEMBERS", "LAG"]
    assert rows[group][1:] == ["Empty", "0", "6"]
    assert rows[share] == ["Share", "Empty", "0", "3"]
    with Terminal("groups", "list", "-b", run.address) as terminal:
        terminal.says(share)
