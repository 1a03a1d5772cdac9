"""`ottla broker`: its start, its clean end, and the errors of a failed start."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from ottla import __version__ as ottla_version
from tests.cli.conftest import PATIENCE, RunningBroker, ottla, start, strip_warning

NOBODY = 65534


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_broker_cleanly_and_a_restart_has_its_data(tmp_path: Path, number: signal.Signals) -> None:
    broker = RunningBroker(tmp_path)
    assert ottla("produce", "kept", "--bootstrap-server", broker.address, stdin="one\ntwo\n").status == 0
    said = "ottla broker: stopping; Ctrl-C again ends it at once\n" if number == signal.SIGINT else ""
    assert broker.end(number) == (0, "", said)
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    broker = RunningBroker(tmp_path)
    read = ottla("consume", "kept", "--from-beginning", "--max-messages", 2, "--bootstrap-server", broker.address)
    broker.kill()
    assert read.out == "one\ntwo\n"


def test_it_needs_little_memory_and_loads_neither_arrow_nor_clients(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path)
    resident = psutil.Process(broker.process.pid).memory_info().rss
    broker.kill()
    assert resident < 60_000_000
    script = (
        "import sys, ottla.cli.main, ottla.cli.broker, ottla.broker.server, ottla.broker.broker_role, ottla.broker.controller_role\n"
        "unwanted = {'pyarrow', 'pandas', 'numpy', 'rich', 'ssl', '_hashlib', 'cramjam', 'ottla.client'}\n"
        "print(*unwanted & sys.modules.keys())"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert loaded.stdout == "\n"


def test_without_a_directory_topics_are_lost_when_the_broker_stops() -> None:
    process = start("broker", "--listen", "127.0.0.1:0")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready ")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert strip_warning(err) == "ottla broker: no --data-dir: topics are deleted when the broker stops\n"


@pytest.mark.behaviour("B7")
def test_very_verbose_it_logs_each_request_with_client_api_and_time(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path, "-vv")
    ottla("topics", "list", "--bootstrap-server", broker.address, "--set", "client.id=curious")
    log = broker.end(signal.SIGTERM).err
    line, *_ = [line for line in log.splitlines() if "Metadata" in line and "curious" in line]
    assert '"total_ms": ' in line


def test_settings_reach_the_broker(tmp_path: Path, topic: str) -> None:
    broker = RunningBroker(tmp_path, "--set", "num.partitions=7", "--set", "auto.create.topics.enable=false")
    at = ("--bootstrap-server", broker.address)
    assert ottla("topics", "create", topic, *at).status == 0
    assert f"{topic}: 7 partitions" in ottla("topics", "describe", topic, *at).out
    refused = ottla("produce", "another", *at, "--set", "max.block.ms=500", stdin="x\n")
    broker.kill()
    assert refused.status == 1
    assert "another" in refused.sentence


def test_a_kafka_properties_file_starts_a_broker_and_settings_without_effect_are_logged(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        f"process.roles=broker\nnum.io.threads=8\nlog.dirs={tmp_path}/data\nlisteners=PLAINTEXT://127.0.0.1:0"
    )
    process = start("broker", "--config", file)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready 127.0.0.1:")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    said = "ottla broker: settings without effect in this broker: num.io.threads\n"
    assert (process.returncode, strip_warning(err).partition("\n")[0] + "\n") == (0, said)
    assert (tmp_path / "data" / "meta.properties").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_node_with_a_file_of_settings_logs_its_start_and_its_clean_end(
    tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(f"node.id=7\nlog.dirs={tmp_path}/data\nlisteners=127.0.0.1:0\n")
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"{number.name} is ignored here, as under nohup, and so in a broker")
    process = start("broker", "--config", file)
    assert process.stdout is not None
    address = process.stdout.readline().split()[1]
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()
    cluster = dict(
        line.split("=", 1) for line in (tmp_path / "data" / "meta.properties").read_text().splitlines() if "=" in line
    )["cluster.id"]
    lines = [line for line in err.splitlines() if " INFO " in line]
    assert f"starting version={ottla_version} pid={process.pid} node=7 roles=broker,controller" in lines[0]
    assert f"directories={tmp_path}/data" in lines[0]
    assert f"started cluster={cluster} listeners=PLAINTEXT://{address} seconds=" in lines[2]
    assert f"stopped signal={number.name} seconds=" in lines[-1]


def test_a_new_data_directory_is_logged_with_its_cluster_and_with_the_one_that_was_probably_meant(
    tmp_path: Path,
) -> None:
    RunningBroker(tmp_path / "orders").kill()
    first, second = run_once(tmp_path / "order"), run_once(tmp_path / "order")
    properties = (tmp_path / "order" / "meta.properties").read_text()
    cluster_id = re.findall("cluster.id=(.*)", properties)[0]
    assert f"INFO created data directory {tmp_path}/order for new cluster {cluster_id}\n" in first
    assert f"WARNING {tmp_path}/order is new and empty, and {tmp_path}/orders has data: if you meant that one" in first
    assert strip_warning(second) == ""


def run_once(data_dir: Path) -> str:
    """Start a broker, stop it when it is ready, and return what it wrote to standard error."""
    process = start("broker", "--listen", "127.0.0.1:0", "--data-dir", data_dir)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready ")
    process.terminate()
    return process.communicate(timeout=PATIENCE)[1]


def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ottla.cli.main", "broker", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)]
    process = subprocess.Popen(["nohup", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = process.stdout.readline().split()[1]
    process.send_signal(signal.SIGHUP)
    assert ottla("topics", "list", "--bootstrap-server", address).status == 0
    process.terminate()
    assert process.wait(PATIENCE) == 0
    process.communicate()


def test_a_mistake_in_a_file_is_one_error_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=1\nnum.partition=3\n")
    refused = ottla("broker", "--config", file)
    assert refused.status == 2
    assert f"{file}, line 2: unknown setting 'num.partition'; did you mean 'num.partitions'?" in refused.sentence


def test_each_listener_has_its_line(tmp_path: Path) -> None:
    process = start("broker", "--data-dir", tmp_path, "--listen", "IN://127.0.0.1:0", "--listen", "OUT://[::1]:0")
    assert process.stdout is not None
    first, second = process.stdout.readline(), process.stdout.readline()
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert re.fullmatch(r"ready 127\.0\.0\.1:\d+\n", first)
    assert re.fullmatch(r"ready \[::1\]:\d+\n", second)


def test_a_port_in_use_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = ottla("broker", "--listen", where, "--data-dir", tmp_path)
    assert refused.status == 1
    assert refused.sentence.startswith(f"cannot listen on {where}: the port is taken")


def test_the_error_for_a_directory_in_use_names_the_process(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path)
    refused = ottla("broker", "--listen", "127.0.0.1:0", "--data-dir", tmp_path)
    broker.kill()
    assert refused.status == 1
    assert f"{tmp_path} is in use by process {broker.process.pid}" in refused.sentence


def test_an_impossible_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = ottla("broker", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "file" / "data")
    assert refused.status == 1
    assert f"data directory {tmp_path}/file/data cannot be used" in refused.sentence
    refused = ottla("broker", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "file")
    assert f"data directory {tmp_path}/file cannot be used: it is a file" in refused.sentence


def test_a_directory_that_is_not_writable_is_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    # Nothing is forbidden to root, so stop being root once everything is loaded.
    script = (
        "import os, sys, ottla.broker.serve, ottla.broker.server, ottla.broker.settings.sources, ottla.cli.broker, ottla.cli.main\n"
        "import ottla.storage.directory.similar_directories\n"
        f"os.geteuid() or os.seteuid({NOBODY})\n"
        "sys.exit(ottla.cli.main.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "broker", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert refused.returncode == 1
    sentence = (
        f"ottla: data directory {tmp_path} cannot be used: Permission denied; choose another or mend its permissions"
    )
    assert refused.stderr == f"{sentence}\n"


def test_a_limit_of_open_files_that_leaves_no_connections_is_an_error(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "ottla.cli.main", "broker", "--listen", "127.0.0.1:0", "--data-dir", str(tmp_path)]
    command = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *words]
    refused = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert refused.returncode == 1
    assert "the limit of open files is 64, and a broker needs 128 or more" in refused.stderr


def test_garbage_on_the_port_does_not_affect_other_clients(address: str, topic: str) -> None:
    host, _, port = address.rpartition(":")
    # Each announces a frame that is longer than any may be; of a shorter one the broker would await the rest.
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x77\x35\x94\x00" + bytes(100), b"\x80" + os.urandom(4999)):
        with socket.create_connection((host, int(port)), PATIENCE) as sock:
            sock.sendall(garbage)
            try:
                assert sock.recv(100) == b""
            except ConnectionResetError:  # also a close: the broker had not read all of the input
                pass
    assert ottla("topics", "create", topic, "--bootstrap-server", address).status == 0


def test_it_notifies_a_service_manager_and_prints_further_lines_when_it_is_ready(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(PATIENCE)
        lines = ("--ready-line", "Kafka Server started", "--ready-line", "second")
        process = start("broker", "--listen", "127.0.0.1:0", *lines, NOTIFY_SOCKET=str(tmp_path / "notify"))
        assert manager.recv(100) == b"READY=1"
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready ")
    assert (process.stdout.readline(), process.stdout.readline()) == ("Kafka Server started\n", "second\n")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def test_on_a_system_without_what_it_needs_it_says_so_in_one_sentence() -> None:
    script = (
        "import sys; sys.modules['fcntl'] = None\n"  # as on Windows: its import raises ModuleNotFoundError
        "from ottla.__main__ import main; sys.argv = ['ottla', 'broker']; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("ottla: a broker needs Linux or macOS, and ")
    assert done.stderr.count("\n") == 1
