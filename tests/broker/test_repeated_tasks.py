"""Tasks that a broker repeats: an exception in one turn must not end the task."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from ottla.broker.event_loop.timers import Timers, repeat
from ottla.broker.settings.config import read_config
from ottla.clock import Clock, ManualClock
from ottla.errors import ErrorCode, KafkaError, OttlaError
from tests.broker.serving import create_topic, delete_topics, start_server, stop_server
from tests.broker.wire import batch


class Failing:
    """A task that raises these errors one after another, and then none."""

    def __init__(self, *errors: Exception, fatal: tuple[type[Exception], ...] = ()) -> None:
        self.errors = list(errors)
        self.turns = 0
        self.clock, self.timers = ManualClock(), Timers()
        repeat(self.timers, self.clock, "a task", self, lambda: 2.0, fatal=fatal)

    def __call__(self) -> None:
        self.turns += 1
        if self.errors:
            raise self.errors.pop(0)

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.run(self.clock.monotonic())


def test_a_repeated_task_that_raises_runs_again_at_its_next_turn(caplog: pytest.LogCaptureFixture) -> None:
    task = Failing(KeyError("t"), KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no space left"))
    for _ in range(3):
        task.pass_time(2.0)
    assert task.turns == 3
    assert "task=a task" in caplog.text
    assert "no space left" in caplog.text


def test_a_repeated_task_raises_errors_that_have_to_stop_the_process() -> None:
    task = Failing(OttlaError("the log of the quorum cannot be written"), fatal=(OttlaError,))
    with pytest.raises(OttlaError, match="log of the quorum"):
        task.pass_time(2.0)


class HurryingClock(Clock):
    """A clock that advances five milliseconds with each reading, so that every time slice of a sweep is one partition
    long.
    """

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        self._now += 0.005
        return self._now

    def wall_ms(self) -> int:
        return 1_700_000_000_000


def killed_server(directory: Path, topics: list[str]) -> None:
    """Leave the directory as a kill -9 does, with a record in each topic."""
    server = start_server(read_config(listeners="127.0.0.1:0", log_dirs=str(directory)))
    for name in topics:
        create_topic(server, name)
        partition = server.node.partitions.find(name, 0)
        assert partition is not None
        partition.log.append(batch([b"a"]), leader_epoch=0, now_ms=1)
    server._sockets.close()
    server._directory.close(clean=False)


def test_topics_deleted_while_a_killed_brokers_logs_are_opened_do_not_prevent_the_opening_of_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topics = [f"t{number}" for number in range(6)]
    killed_server(tmp_path, topics)
    server = start_server(read_config(listeners="127.0.0.1:0", log_dirs=str(tmp_path)), HurryingClock())
    try:
        assert server.broker is not None
        node = server.node
        *deleted, kept = [each.topic_partition.topic for each in node.partitions.list_unrecovered]
        opened = set(topics) - {*deleted, kept}
        assert len(deleted) >= 2  # some are opened in later turns
        with caplog.at_level(logging.WARNING):
            delete_topics(server, deleted)
            for _ in range(50):
                node.timers.run(server._sockets.clock.monotonic())
        last = node.partitions.find(kept, 0)
        assert last is not None
        assert last.opened_log is not None
        assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
        server.broker.disk.close()
        assert {path.name for path in tmp_path.glob("t*-0")} == {f"{name}-0" for name in {*opened, kept}}
    finally:
        stop_server(server)
