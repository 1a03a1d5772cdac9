"""Workers that run the function in processes, some of which are killed."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import psutil
import pytest

import ottla
from ottla import Backoff, ConfigError
from ottla.client.work.call_process import send_object
from ottla.client.work.dead_letters import read_dead_letter
from tests.client.conftest import NewTopicName, eventually
from tests.client.process.running import records_of
from tests.client.work.running import committed_offset, fill, running

pytestmark = pytest.mark.xdist_group("work-processes")
SOON = Backoff(2, base=0.01, cap=0.01)


def append(path: Path, line: str) -> None:
    """Append a line in one write, so that lines of several processes do not mix."""
    with path.open("ab", buffering=0) as file:
        file.write(line.encode() + b"\n")


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def record_pid(path: Path, record: ottla.ConsumerRecord) -> None:
    append(path, f"{(record.value or b'').decode()} {os.getpid()}")


def fail(record: ottla.ConsumerRecord) -> None:
    raise LookupError(f"no {record.value!r}")


def spin_if_slow(path: Path, record: ottla.ConsumerRecord) -> None:
    """Never return for a slow record, and never let another thread run Python."""
    record_pid(path, record)
    while record.value == b"slow":
        sum(range(1000))


def wait_at_first(path: Path, record: ottla.ConsumerRecord) -> None:
    """Wait for ever in the first call of each record."""
    value = (record.value or b"").decode()
    is_first = not any(line.split()[0] == value for line in lines_of(path))
    record_pid(path, record)
    while is_first:
        signal.pause()


def exit_if_poison(path: Path, record: ottla.ConsumerRecord) -> None:
    if record.value == b"poison":
        os._exit(3)
    record_pid(path, record)


def count_values(path: Path) -> Counter[str]:
    return Counter(line.split()[0] for line in lines_of(path))


def last_pid(path: Path) -> int:
    return int(lines_of(path)[-1].split()[1])


def test_records_are_processed_in_several_processes_and_committed(
    servers: str, new_topic: NewTopicName, tmp_path: Path
) -> None:
    topic, path = new_topic(2), tmp_path / "seen"
    values = [str(number) for number in range(200)]
    with running("threads", servers, topic, partial(record_pid, path), concurrency=2, processes=2):
        fill(servers, topic, values, key=str.encode)
        eventually(lambda: len(lines_of(path)) == 200)
    assert count_values(path) == dict.fromkeys(values, 1)
    pids = {int(line.split()[1]) for line in lines_of(path)}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert sum(committed_offset(servers, topic, topic, number) for number in range(2)) == 200
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_an_exception_in_a_process_is_retried_and_reported_with_its_traceback(
    servers: str, new_topic: NewTopicName
) -> None:
    topic, dead = new_topic(), new_topic()
    fill(servers, topic, ["1"])
    with running("threads", servers, topic, fail, concurrency=1, processes=1, retries=SOON, dead_letters=dead):
        eventually(lambda: committed_offset(servers, topic, topic) == 1)
    [letter] = records_of(servers, dead)
    about = read_dead_letter(letter.headers)
    assert (about.attempts, about.error, about.message) == (3, "builtins.LookupError", "no b'1'")
    trace = dict(letter.headers)["__connect.errors.exception.stacktrace"]
    assert b"in fail" in (trace or b"")


def test_a_call_that_takes_too_long_ends_with_its_process(
    servers: str, new_topic: NewTopicName, tmp_path: Path
) -> None:
    topic, dead, path = new_topic(), new_topic(), tmp_path / "seen"
    fill(servers, topic, ["slow", "1", "2"], key=str.encode)
    settings: dict[str, Any] = {"concurrency": 1, "processes": 1, "retries": 1, "dead_letters": dead}
    with running("threads", servers, topic, partial(spin_if_slow, path), time_limit=0.5, **settings):
        eventually(lambda: committed_offset(servers, topic, topic) == 3)
    assert count_values(path) == {"slow": 2, "1": 1, "2": 1}
    [letter] = records_of(servers, dead)
    about = read_dead_letter(letter.headers)
    assert (letter.value, about.attempts, about.error) == (b"slow", 2, "builtins.TimeoutError")
    assert about.message == "the call took longer than time_limit = 0.5 s; its process was ended"


def test_a_record_is_retried_if_its_process_is_killed(servers: str, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "seen"
    fill(servers, topic, ["1"])
    with running("threads", servers, topic, partial(wait_at_first, path), concurrency=1, processes=1, retries=SOON):
        eventually(lambda: len(lines_of(path)) == 1)
        os.kill(last_pid(path), signal.SIGKILL)
        eventually(lambda: committed_offset(servers, topic, topic) == 1)
    first, second = pids_of(path)
    assert first != second


def pids_of(path: Path) -> list[int]:
    return [int(line.split()[1]) for line in lines_of(path)]


def test_a_record_that_ends_each_process_becomes_a_dead_letter(
    servers: str, new_topic: NewTopicName, tmp_path: Path
) -> None:
    topic, dead, path = new_topic(), new_topic(), tmp_path / "seen"
    fill(servers, topic, ["1", "poison", "2"])
    settings: dict[str, Any] = {"concurrency": 1, "processes": 1, "retries": 1, "dead_letters": dead}
    with running("threads", servers, topic, partial(exit_if_poison, path), **settings):
        eventually(lambda: committed_offset(servers, topic, topic) == 3)
    assert count_values(path) == {"1": 1, "2": 1}
    [letter] = records_of(servers, dead)
    about = read_dead_letter(letter.headers)
    assert (letter.value, about.attempts, about.error) == (b"poison", 2, "ottla.errors.WorkerProcessError")
    assert about.message is not None
    assert about.message.endswith("exit code 3)")


def test_a_stop_ends_a_call_that_does_not_return(servers: str, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "seen"
    fill(servers, topic, ["1", "slow"])
    with running("threads", servers, topic, partial(spin_if_slow, path), concurrency=2, processes=2, drain_seconds=0.2):
        eventually(lambda: len(lines_of(path)) == 2)
    assert committed_offset(servers, topic, topic) == 1
    assert not any(map(psutil.pid_exists, pids_of(path)))


def test_processes_end_if_the_worker_is_killed(servers: str, topic: str, tmp_path: Path) -> None:
    path = tmp_path / "seen"
    fill(servers, topic, ["slow"])
    code = (
        "import ottla, functools, pathlib; from tests.client.work.test_processes import spin_if_slow\n"
        f"ottla.work({topic!r}, functools.partial(spin_if_slow, pathlib.Path({str(path)!r})), group={topic!r}, processes=1, "
        f"bootstrap_servers={servers!r})"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as worker:
        eventually(lambda: len(lines_of(path)) == 1, timeout=60)
        worker.kill()
    eventually(lambda: not psutil.pid_exists(last_pid(path)))


def test_random_kills_of_processes_lose_no_record(servers: str, new_topic: NewTopicName, tmp_path: Path) -> None:
    topic, path = new_topic(2), tmp_path / "seen"
    values = [str(number) for number in range(3000)]
    fill(servers, topic, values, key=str.encode)
    retries = Backoff(50, base=0.01, cap=0.05)
    killed: set[int] = set()
    with running("threads", servers, topic, partial(record_pid, path), concurrency=3, processes=3, retries=retries):
        for number in range(10):
            eventually(lambda number=number: len(lines_of(path)) > 250 * number)  # type: ignore[misc]
            pid = last_pid(path)
            if pid not in killed:
                killed.add(pid)
                os.kill(pid, signal.SIGKILL)
        eventually(lambda: set(count_values(path)) == set(values))
        eventually(lambda: sum(committed_offset(servers, topic, topic, each) for each in (0, 1)) == len(values))
    assert sum(count_values(path).values()) <= len(values) + len(killed)
    assert len(killed) >= 3


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"processes": 0}, "processes"),
        ({"processes": 2, "concurrency": 4}, "leave out concurrency"),
    ],
)
def test_an_invalid_number_of_processes_is_one_clear_error(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ottla.Worker("orders", print, group="g", bootstrap_servers="127.0.0.1:1", **wrong)


def test_a_function_that_cannot_be_sent_to_a_process_is_one_clear_error() -> None:
    with pytest.raises(ConfigError, match="top level of a module"):
        ottla.Worker("orders", lambda record: None, group="g", bootstrap_servers="127.0.0.1:1", processes=1)


def test_processes_need_a_blocking_worker() -> None:
    async def main() -> None:
        ottla.aio.Worker("orders", print, group="g", bootstrap_servers="127.0.0.1:1", processes=1)

    with pytest.raises(ConfigError, match=r"use ottla\.work"):
        asyncio.run(main())


def test_a_main_module_without_a_guard_is_one_clear_error(servers: str, topic: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import ottla\n"
        "def handle(record): ...\n"
        f"ottla.work({topic!r}, handle, group={topic!r}, processes=1, bootstrap_servers={servers!r})\n"
    )
    fill(servers, topic, ["1"])
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "__name__ == '__main__'" in done.stderr.splitlines()[-1]


def test_a_record_for_an_ended_process_leaves_no_garbage_that_python_reports() -> None:
    ours, theirs = Pipe()
    theirs.close()

    def fail_to_send() -> OSError:
        try:
            send_object(ours, [1, 2, 3])
        except OSError as error:
            kept = error  # the exception, its traceback and this frame are a cycle
        return kept

    assert isinstance(fail_to_send(), BrokenPipeError)
    gc.collect()  # an exception that Python only reports fails this test
    ours.close()
