"""`ottla produce` and `ottla consume`: lines to records and back."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
from itertools import islice
from pathlib import Path

import pytest

from ottla import Admin, NewTopic, Producer, TopicPartition
from ottla.cli.records.produce import lines_of
from tests.cli.conftest import OTTLA, PATIENCE, RunningBroker, ottla, start
from tests.cli.terminal import Terminal


@pytest.fixture
def topic(address: str, topic: str) -> str:
    """An existing topic: the command prints a warning for a missing one."""
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([NewTopic(topic, 1)])
    return topic


def test_lines_are_consumed_as_they_were_produced(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    lines = ["first", "", "zwei – drei", "x" * 10_000]
    assert ottla("produce", topic, *at, stdin="\n".join(lines)) == (0, "", "")
    read = ottla("consume", topic, *at, "--from-beginning", "--max-messages", 4)
    assert read == (0, "".join(f"{line}\n" for line in lines), "")


def test_topics_can_be_given_as_in_kcat(address: str, topic: str) -> None:
    assert ottla("produce", "-b", address, "-t", topic, stdin="v\n") == (0, "", "")
    assert ottla("consume", "-b", address, "-t", topic, "--from-beginning", "--exit") == (0, "v\n", "")
    assert "the topic is given twice" in ottla("produce", topic, "-t", topic).err


@pytest.mark.parametrize("command", [(), ("produce",), ("topics", "create")])
def test_h_is_help(command: tuple[str, ...]) -> None:
    assert ottla(*command, "-h") == ottla(*command, "--help")


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_keys_are_cut_off_at_the_separator(address: str, topic: str, codec: str) -> None:
    at = ("--bootstrap-server", address)
    sent = ottla("produce", topic, *at, "--key-separator", "::", "--compression-type", codec, stdin="k1::v::1\nk2::\n")
    assert sent == (0, "", "")
    read = ottla("consume", topic, *at, "--from-beginning", "--keys", "--exit")
    assert sorted(read.out.splitlines()) == ["k1\tv::1", "k2\t"]
    assert read.status == 0


def test_a_line_without_the_separator_is_refused_by_its_number(address: str, topic: str) -> None:
    sent = ottla("produce", topic, "--bootstrap-server", address, "--key-separator", ":", stdin="a:b\nnone\n")
    assert sent.status == 1
    assert sent.sentence == "line 2 of standard input has no key separator ':'"


def test_json_has_every_field_and_bytes_that_are_no_text(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    process = subprocess.run(
        [*OTTLA, "produce", topic, *at], input=b"\xff\xfe\nplain\n", capture_output=True, check=True
    )
    assert process.stderr == b""
    read = ottla("consume", topic, *at, "--from-beginning", "--max-messages", 2, "--format", "json")
    first, second = map(json.loads, read.out.splitlines())
    assert first["value"] == {"base64": "//4="}
    assert second["timestamp"] > 1_600_000_000_000
    del second["timestamp"]
    assert second == {"topic": topic, "partition": 0, "offset": 1, "key": None, "value": "plain", "headers": []}


def test_reading_starts_at_the_given_offset(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    ottla("produce", topic, *at, stdin="".join(f"{i}\n" for i in range(10)))
    read = ottla("consume", topic, *at, "--partition", 0, "--offset", 7, "--exit")
    assert read == (0, "7\n8\n9\n", "")
    new = ottla("consume", topic, *at, "--timeout", 0.5)
    assert new == (0, "", "")


def test_fewer_records_than_requested_is_a_failure(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    ottla("produce", topic, *at, stdin="only\n")
    read = ottla("consume", topic, *at, "--from-beginning", "--max-messages", 2, "--timeout", 3)
    assert (read.status, read.out) == (1, "only\n")
    assert read.sentence == "1 of 2 records received, then none for 3 s"


def test_ctrl_c_ends_reading_silently(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    ottla("produce", topic, *at, stdin="one\n")
    process = start("consume", topic, *at, "--from-beginning")
    assert process.stdout is not None
    assert process.stdout.readline() == "one\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=PATIENCE) == ("", "")
    assert process.returncode == 130


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_member_stopped_by_a_signal_has_committed_exactly_the_printed_records(
    address: str, topic: str, protocol: str, number: signal.Signals, status: int
) -> None:
    with Admin(bootstrap_servers=address) as admin, Producer(bootstrap_servers=address) as producer:
        producer.send_many(topic, [b"%d" % value for value in range(50_000)])
        producer.flush()
        for lines in range(1, 5_000, 1_300):
            group = f"{topic}-{lines}"
            settings = ("--group", group, "--from-beginning", "--set", f"group.protocol={protocol}")
            with start("consume", topic, "--bootstrap-server", address, *settings) as process:
                assert process.stdout is not None
                assert process.stderr is not None
                printed = sum(1 for _ in islice(process.stdout, lines))
                process.send_signal(number)
                printed += sum(1 for _ in process.stdout)
                assert (process.wait(PATIENCE), process.stderr.read()) == (status, "")
            committed = admin.list_consumer_group_offsets(group)[TopicPartition(topic, 0)]
            assert committed is not None
            assert committed.offset == printed


def test_ctrl_c_ends_writing_silently_and_keeps_the_sent_records(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    ottla("topics", "create", topic, *at)  # so that there is something to read from before the writer is up
    process = start("produce", topic, *at)
    assert process.stdin is not None
    process.stdin.write("before\n")
    process.stdin.flush()
    assert ottla("consume", topic, *at, "--from-beginning", "--max-messages", 1).out == "before\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=PATIENCE) == ("", "")
    assert process.returncode == 130


def test_a_reader_that_has_enough_ends_it_even_when_no_more_records_come(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    ottla("produce", topic, *at, stdin="one\ntwo\n")
    process = start("consume", topic, *at, "--from-beginning")
    assert process.stdout is not None
    assert process.stdout.readline() == "one\n"
    process.stdout.close()
    assert process.wait(PATIENCE) == 0
    assert process.stdin is not None
    assert process.stderr is not None
    with process.stdin, process.stderr:
        assert process.stderr.read() == ""


@pytest.mark.parametrize("form", ["text", "json", "arrow", "parquet"])
def test_a_reader_that_leaves_in_the_middle_is_no_failure(address: str, topic: str, form: str) -> None:
    at = ("--bootstrap-server", address)
    with Producer(bootstrap_servers=address) as producer:
        for _ in range(400):
            producer.send(topic, bytes(range(256)) * 10)
    process = start("consume", topic, *at, "--from-beginning", "--format", form)
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 1)
    process.stdout.close()
    assert process.stdin is not None
    assert process.stderr is not None
    with process.stdin, process.stderr:
        assert (process.wait(PATIENCE), process.stderr.read()) == (0, "")


def test_a_missing_topic_or_partition_is_reported(address: str, topic: str) -> None:
    at = ("--bootstrap-server", address)
    missing = ottla("consume", f"{topic}-not", *at)
    assert missing.status == 1
    message = f"topic '{topic}-not' does not exist at {address}; create it with: ottla topics create {topic}-not"
    assert missing.sentence == message
    assert "has no partition 2, only 0 to 0" in ottla("consume", topic, "--partition", 2, *at).sentence


def test_a_missing_offset_is_reported_instead_of_waited_for(address: str, topic: str) -> None:
    ottla("produce", topic, "--bootstrap-server", address, stdin="a\nb\n")
    reading = ["consume", topic, "--bootstrap-server", address, "--partition", 0, "--timeout", 0]
    assert ottla(*reading, "--offset", 3).sentence == f"{topic}-0 has no offset 3, only 0 to 2"
    assert ottla(*reading, "--offset", 2).status == 0


def test_closed_standard_streams_are_no_failure(address: str, topic: str) -> None:
    for command in (f"produce {topic}", "topics list"):
        line = f"{shlex.join(OTTLA)} {command} --bootstrap-server {address} <&- >&-"
        done = subprocess.run(line, shell=True, capture_output=True, timeout=PATIENCE, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_an_automatically_created_topic_is_reported_with_the_closest_name(address: str, topic: str) -> None:
    result = ottla("produce", topic + "s", "--bootstrap-server", address, stdin="x\n")
    assert result.status == 0
    assert (
        result.sentence == f"topic '{topic}s' is new: the broker created it with 1 partition; did you mean {topic!r}?"
    )
    assert ottla("produce", topic + "s", "--bootstrap-server", address, stdin="x\n").err == ""


def test_a_line_that_is_no_record_is_refused_before_it_ends(address: str, topic: str) -> None:
    setting = ("--set", "max.request.size=1000")
    result = ottla("produce", topic, "--bootstrap-server", address, *setting, stdin="short\n" + 5_000 * "x")
    assert result.status == 1
    assert "line 2 of standard input is longer than max.request.size" in result.sentence
    with open("/dev/zero", "rb") as zeros:
        endless = subprocess.run(
            [*OTTLA, "produce", topic, "--bootstrap-server", address], stdin=zeros, capture_output=True, timeout=60
        )
    assert b"line 1 of standard input is longer" in endless.stderr


def test_ctrl_c_is_handled_in_the_middle_of_an_endless_line(tmp_path: Path) -> None:
    size = 1_000_000_000
    (tmp_path / "zeros").touch()
    os.truncate(tmp_path / "zeros", size)
    interrupted = signal.signal(signal.SIGPROF, signal.default_int_handler)
    with (tmp_path / "zeros").open("rb") as zeros:
        signal.setitimer(signal.ITIMER_PROF, 0.02)  # of the processor's time: a busy machine takes no longer
        try:
            with pytest.raises(KeyboardInterrupt):
                list(lines_of(zeros, 2 * size))
            assert zeros.tell() < size / 2
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, interrupted)


def test_ctrl_c_waits_briefly_for_an_unresponsive_broker_and_reports_the_lost_records(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path)
    process = start("produce", "t", "--bootstrap-server", broker.address)
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write("x\n" * 50_000)
    assert "topic 't' is new" in process.stderr.readline()
    os.kill(broker.process.pid, signal.SIGSTOP)
    process.stdin.write("x\n" * 200_000)  # more than a pipe holds: some of it was read
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    broker.kill()
    assert process.returncode == 130
    assert re.search(r"closed with undelivered records records=\d+", err)


def test_in_a_terminal_produce_prints_how_its_input_ends(address: str, topic: str) -> None:
    with Terminal("produce", topic, "--bootstrap-server", address) as terminal:
        terminal.says("ottla: each line is a record; end with Ctrl-D")
        terminal.type(b"hello\n\x04")
        assert terminal.ends() == 0


def test_in_a_terminal_consume_prints_what_it_waits_for(address: str, topic: str) -> None:
    with Terminal("consume", topic, "--bootstrap-server", address) as terminal:
        terminal.says(
            f"ottla: waiting for new records of {topic} (1 partition); stop with Ctrl-C; --from-beginning prints"
        )
        with Producer(bootstrap_servers=address) as producer:
            producer.send(topic, b"hello")
        terminal.says("hello")
        terminal.signal(signal.SIGINT)
        assert terminal.ends() == 130
        assert b"Traceback" not in terminal.raw
