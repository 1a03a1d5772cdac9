"""Tasks of taskiq over topics of a real broker."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from taskiq import BrokerMessage
from taskiq.acks import AcknowledgeType
from taskiq.brokers.inmemory_broker import InmemoryResultBackend
from taskiq.receiver import Receiver

from ottla import Admin, Broker, ConfigResource, NewTopic, TopicPartition
from ottla.errors import ConfigError
from ottla.taskiq import TaskBroker
from tests.patience import eventually

pytestmark = pytest.mark.heavy

SECONDS = 60


def task_broker(broker: Broker, **settings: Any) -> TaskBroker:
    """Return a taskiq broker for the topic `tasks`, with results in memory."""
    made = TaskBroker("tasks", broker.client_settings(), **{"group": "workers", **settings})
    return made.with_result_backend(InmemoryResultBackend())


@asynccontextmanager
async def working(tasks: TaskBroker, ack_type: AcknowledgeType = AcknowledgeType.WHEN_SAVED) -> AsyncIterator[None]:
    """Execute tasks in this process, as `taskiq worker` does."""
    finish = asyncio.Event()
    await tasks.startup()
    receiver = asyncio.create_task(
        Receiver(tasks, run_startup=False, max_async_tasks=10, ack_type=ack_type).listen(finish)
    )
    try:
        yield
    finally:
        finish.set()
        await receiver
        await tasks.shutdown()


def committed(broker: Broker) -> int:
    with Admin(broker.client_settings()) as admin:
        found = admin.list_consumer_group_offsets("workers").get(TopicPartition("tasks", 0))
    return -1 if found is None else found.offset


@pytest.mark.parametrize("share", [False, True])
def test_a_task_is_executed_and_its_result_is_returned(share: bool) -> None:
    with Broker() as broker:
        with Admin(broker.client_settings()) as admin:
            admin.create_topics([NewTopic("tasks", 1)])
            if share:
                admin.alter_configs({ConfigResource("group", "workers"): {"share.auto.offset.reset": "earliest"}})
        tasks = task_broker(broker, share=share)

        @tasks.task
        async def add(one: int, other: int) -> int:
            return one + other

        async def play() -> list[int]:
            async with working(tasks):
                kicked = [await add.kiq(number, 1) for number in range(20)]
                return [(await each.wait_result(timeout=SECONDS)).return_value for each in kicked]

        assert asyncio.run(play()) == list(range(1, 21))
        if not share:
            assert committed(broker) == 20


def test_a_task_that_was_not_acknowledged_is_executed_again() -> None:
    calls: list[int] = []

    async def play(broker: Broker, goal: int, ack_type: AcknowledgeType) -> None:
        tasks = task_broker(broker)
        is_done = asyncio.Event()

        @tasks.task(task_name="step")
        async def step(number: int) -> None:
            calls.append(number)
            if len(calls) == goal:
                is_done.set()

        async with working(tasks, ack_type):
            if goal == 3:
                for number in range(3):
                    await step.kiq(number)
            await asyncio.wait_for(is_done.wait(), SECONDS)

    with Broker() as broker:
        asyncio.run(play(broker, 3, AcknowledgeType.MANUAL))
        asyncio.run(play(broker, 6, AcknowledgeType.WHEN_EXECUTED))
    assert sorted(calls) == [0, 0, 1, 1, 2, 2]


def test_tasks_with_the_same_key_are_executed_in_their_order() -> None:
    with Broker() as broker:
        tasks = task_broker(broker, order="key")
        running: dict[str, int] = {}
        order: dict[str, list[int]] = {"a": [], "b": []}

        @tasks.task
        async def step(key: str, number: int) -> None:
            running[key] = running.get(key, 0) + 1
            assert running[key] == 1
            await asyncio.sleep(0)
            order[key].append(number)
            running[key] -= 1

        async def play() -> None:
            async with working(tasks):
                kicked = [
                    await step.kicker().with_labels(key=key).kiq(key, number) for number in range(10) for key in "ab"
                ]
                for each in kicked:
                    assert not (await each.wait_result(timeout=SECONDS)).is_err

        asyncio.run(play())
        assert order == {"a": list(range(10)), "b": list(range(10))}


PROGRAM = """
import os
from ottla.taskiq import TaskBroker

broker = TaskBroker("tasks", bootstrap_servers=os.environ["SERVERS"], group="workers", session_timeout_ms=6000)

@broker.task(task_name="append")
async def append(number: int) -> None:
    with open(os.environ["OUT"], "a") as file:
        file.write(f"{number}\\n")
"""


def test_no_task_is_lost_when_a_worker_process_is_killed(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    out = tmp_path / "out"
    out.touch()
    with Broker() as broker:
        environment = {**os.environ, "SERVERS": broker.bootstrap_servers, "OUT": str(out)}
        command = [sys.executable, "-m", "taskiq", "worker", "program:broker", "--workers", "1"]

        async def send(numbers: range) -> None:
            tasks = TaskBroker("tasks", broker.client_settings(), group="workers")
            await tasks.startup()
            append = tasks.register_task(lambda number: None, task_name="append")
            for number in numbers:
                await append.kiq(number)
            await tasks.shutdown()

        def executed() -> set[int]:
            return {int(line) for line in out.read_text().split()}

        def has_executed(count: int) -> bool:
            return len(executed()) >= count

        asyncio.run(send(range(50)))
        for goal in (50, 100):
            worker = subprocess.Popen(command, cwd=tmp_path, env=environment, start_new_session=True)
            try:
                eventually(partial(has_executed, goal - 49))
                if goal == 50:
                    os.killpg(worker.pid, signal.SIGKILL)
                    asyncio.run(send(range(50, 100)))
                else:
                    eventually(lambda: executed() == set(range(100)))
                    worker.send_signal(signal.SIGTERM)
            finally:
                if worker.poll() is None and goal == 50:
                    os.killpg(worker.pid, signal.SIGKILL)
                worker.wait(SECONDS)


def test_a_task_cannot_be_sent_before_the_broker_was_started() -> None:
    tasks = TaskBroker("tasks", bootstrap_servers="127.0.0.1:1", group="workers")
    message = BrokerMessage(task_id="1", task_name="step", message=b"{}", labels={})
    with pytest.raises(ConfigError, match=r"await broker\.startup\(\) first"):
        asyncio.run(tasks.kick(message))


def test_an_empty_topic_is_a_clear_error() -> None:
    with pytest.raises(ConfigError, match="invalid value '' for topic"):
        TaskBroker("", group="workers")
