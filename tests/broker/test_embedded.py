"""`ottla.Broker`: it starts in the calling program, ends with it, and several can run at once."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import cast

import psutil
import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.coordination.cluster.features import BROKER_LEVELS, METADATA_VERSION, Levels
from ottla.errors import ConfigError, IllegalStateError, OttlaError
from tests.broker.wire import Wire, values
from tests.patience import eventually

BOTH = pytest.mark.parametrize("process", [False, True])


def is_closed(bootstrap_servers: str) -> bool:
    """True if the address refuses connections."""
    host, _, port = bootstrap_servers.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) != 0


def wait_for_exit(pid: int, seconds: float = 60) -> None:
    """Wait for the end of a process that is not our child; fails where it takes longer."""
    try:
        psutil.Process(pid).wait(seconds)
    except psutil.NoSuchProcess:
        pass


@BOTH
def test_a_broker_serves_inside_a_with_statement_only(process: bool) -> None:
    with Broker(process=process) as broker:
        servers = broker.bootstrap_servers
        with Wire(servers) as wire:
            wire.create("t")
            assert wire.produce("t", b"a").error_code == 0
    assert is_closed(servers)
    with pytest.raises(IllegalStateError, match="not running"):
        _ = broker.bootstrap_servers


@BOTH
def test_close_can_be_repeated_and_the_broker_started_again(tmp_path: Path, process: bool) -> None:
    broker = Broker(tmp_path, process=process)
    broker.close()
    for _ in range(2):
        broker.start()
        broker.close()
        broker.close()


@BOTH
def test_two_brokers_in_one_process_are_independent(process: bool) -> None:
    with Broker(process=process) as one, Broker(process=process) as two:
        assert one.bootstrap_servers != two.bootstrap_servers
        with Wire(one.bootstrap_servers) as first, Wire(two.bootstrap_servers) as second:
            first.create("t")
            assert [topic.name for topic in first.metadata("t").topics if not topic.error_code] == ["t"]
            assert [topic.name for topic in second.metadata("t").topics if not topic.error_code] == []


def test_a_directory_without_a_name_is_rejected() -> None:
    with pytest.raises(ConfigError, match="data_dir is empty: name a directory, or leave it out"):
        Broker("")


@BOTH
def test_a_directory_in_use_is_a_one_line_error_that_names_the_owner(tmp_path: Path, process: bool) -> None:
    with Broker(tmp_path), pytest.raises(ConfigError, match=f"in use by process {os.getpid()}"):
        Broker(tmp_path, process=process).start()


@BOTH
def test_a_port_in_use_is_a_one_line_error(process: bool) -> None:
    with Broker() as broker, pytest.raises(ConfigError, match="the port is taken by another process"):
        Broker(listen=broker.bootstrap_servers, process=process).start()


def test_a_failed_start_leaves_the_directory_unlocked_and_unchanged(tmp_path: Path) -> None:
    with Broker(tmp_path):
        pass
    with Broker() as other, pytest.raises(ConfigError):
        Broker(tmp_path, listen=other.bootstrap_servers).start()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    with Broker(tmp_path):
        pass


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"num_partition": 3}, "did you mean 'num_partitions'"),
        ({"num_partitions": 0}, "must be at least 1"),
        ({"listen": "nowhere"}, "must be host:port"),
        ({"listen": "A://a:1,A://b:2"}, "A is listed twice"),
        ({"data_dir": "a,b"}, "name several directories with"),
        ({"default_replication_factor": 3}, "a single broker keeps one replica"),
        ({"advertised_listeners": "0.0.0.0:9092"}, "clients need a host"),
    ],
)
def test_an_invalid_setting_is_a_one_line_error_before_anything_starts(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Broker(**settings)  # type: ignore[arg-type]


def test_an_invalid_directory_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="cannot be used"):
        Broker(tmp_path / "file").start()


@BOTH
def test_a_temporary_directory_is_deleted_with_the_broker(
    process: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    with Broker(process=process):
        assert len(list(tmp_path.iterdir())) == 1
    assert not list(tmp_path.iterdir())


def test_topics_and_data_persist_after_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", partitions=2)
        wire.produce("t", b"a", b"b")
        before = wire.metadata("t").topics
    with Broker(tmp_path, process=True) as broker, Wire(broker.bootstrap_servers) as wire:
        assert wire.metadata("t").topics == before
        assert values(wire.fetch("t")) == [b"a", b"b"]
        assert wire.produce("t", b"c").base_offset == 2


def test_closing_does_not_wait_for_waiting_clients(tmp_path: Path) -> None:
    from tests.broker.wire import fetch

    broker = Broker(tmp_path).start()
    with Wire(broker.bootstrap_servers) as wire, Wire(broker.bootstrap_servers) as other:
        wire.create("t")
        wire.send(fetch("t", max_wait_ms=60_000), 12)
        other.metadata()  # so that the fetch has arrived too
        began = time.monotonic()
        broker.close()
        assert time.monotonic() - began < 5
        wire.receive(fetch("t"), 12)
        assert wire.hung_up()


def test_no_thread_remains() -> None:
    before = set(threading.enumerate())
    with Broker() as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", flush_messages=1)
        assert wire.produce("t", b"a").error_code == 0
    assert not [thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("ottla-")]


ORPHAN = """
import os, sys, time
from ottla.broker.embedding.embedded_broker import Broker
broker = Broker(process=True).start()
print(broker.pid, flush=True)
exec(sys.argv[1])
"""


def start_parent(program: str, argument: str) -> subprocess.Popen[str]:
    """A parent process that prints the process id of its broker."""
    return subprocess.Popen(
        [sys.executable, "-c", program, argument],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


@pytest.mark.parametrize(
    "end",
    [
        "sys.exit()",
        "os._exit(1)",
        "os.kill(os.getpid(), 9)",
        "raise ValueError",
        # A child that was forked holds the pipe for longer than its parent, and the broker, live.
        "child = os.fork()\nif child == 0:\n    os.close(1); os.close(2); sys.stdin.read()\nos._exit(0)",
    ],
)
def test_a_parent_that_ends_in_any_way_leaves_no_process(end: str) -> None:
    parent = start_parent(ORPHAN, end)
    assert parent.stdout is not None
    with parent:  # which ends what its child waits for
        broker = int(parent.stdout.readline())
        parent.wait(60)
        wait_for_exit(broker)


UNREADY = """
import os, sys
from ottla.broker.embedding.broker_process import BrokerProcess
from ottla.broker.settings.config import read_config
nobody = {"controller.quorum.bootstrap.servers": "127.0.0.1:9", "process.roles": "broker", "node.id": 7}
config = read_config({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": sys.argv[1], **nobody})
print(BrokerProcess(config, wait=False).pid, flush=True)
sys.stdin.readline()
os.kill(os.getpid(), 9)
"""


def test_a_parent_that_ends_leaves_no_process_that_is_not_registered_yet(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\n")
    parent = start_parent(UNREADY, str(tmp_path))
    assert parent.stdout is not None
    with parent:
        broker = int(parent.stdout.readline())
        eventually((tmp_path / "recovery-point-offset-checkpoint").exists)
    wait_for_exit(broker, seconds=40)  # an unregistered broker stops after a minute


def test_a_process_of_its_own_logs_with_the_time(capfd: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("ottla").setLevel(logging.INFO)
    with Broker(process=True):
        pass
    log = capfd.readouterr().err
    assert re.search(
        r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO ottla\.broker\.lifecycle: starting ", log, re.MULTILINE
    )


def test_the_end_of_a_forked_child_does_not_affect_the_broker() -> None:
    with Broker(process=True) as broker:
        child = os.fork()
        if child == 0:
            broker.close()
            os._exit(0)
        os.waitpid(child, 0)
        with Wire(broker.bootstrap_servers) as wire:
            wire.create("t")


def test_a_forked_child_holds_neither_the_port_nor_the_directory(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        servers = broker.bootstrap_servers
        heard, reported = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(reported, b"!")  # it has closed inherited descriptors by now
            signal.pause()
        try:
            assert os.read(heard, 1)
            wire.create("t")
            broker.close()
            assert is_closed(servers)
            with Broker(tmp_path):
                pass
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(heard)
            os.close(reported)


def test_a_program_without_a_close_ends_too(tmp_path: Path) -> None:
    code = "import sys; from ottla.broker.embedding.embedded_broker import Broker; Broker(sys.argv[1]).start()"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, timeout=30)
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_process_that_ends_during_its_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from ottla.errors import OttlaError

    monkeypatch.setattr("ottla.broker.embedding.broker_process.BOOT", "import os; os._exit(7)")
    with pytest.raises(OttlaError, match="ended with status 7 before it was ready"):
        Broker(process=True).start()


def test_sigterm_stops_the_broker_cleanly(tmp_path: Path) -> None:
    with Broker(tmp_path, process=True) as broker:
        with Wire(broker.bootstrap_servers) as wire:
            wire.create("t")
            wire.produce("t", b"a")
        os.kill(broker.pid, signal.SIGTERM)
        wait_for_exit(broker.pid)
        assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_a_broker_that_does_not_support_the_features_of_its_directory_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older version must not run on what a newer one has finalized: it would miss what it does not know."""
    with Broker(data_dir=tmp_path):
        pass
    monkeypatch.setitem(cast("dict[str, Levels]", BROKER_LEVELS), METADATA_VERSION, Levels(7, 30))
    with pytest.raises(
        OttlaError, match=r"metadata\.version 33, which this broker does not support.*this one supports 30"
    ):
        Broker(data_dir=tmp_path).start()
