"""The worker for asyncio: the loop of `ottla.Worker`, with a task for each running call."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Iterable, Mapping
from inspect import isawaitable
from typing import Any

from ottla.aio.consumer import Consumer
from ottla.aio.processor import perform_calls
from ottla.aio.producer import Producer
from ottla.aio.share_consumer import ShareConsumer
from ottla.client.process.outgoing import Outgoing
from ottla.client.process.stop_signals import stop_on_signals
from ottla.client.work.state.schedule import Job
from ottla.client.work.worker_face import Function, WorkerBase
from ottla.errors import ConfigError, KafkaTimeoutError, OttlaError
from ottla.model import FOREVER, TopicPartition

log = logging.getLogger(__name__)

NO_PROCESSES = "processes={!r} with ottla.aio.work, which runs coroutines in the event loop: use ottla.work"
TURN_SECONDS = 0.01
"""The time after which a task that never waited lets others run."""


async def work(
    topics: str | Iterable[str], function: Function, config: Mapping[str, Any] | None = None, /, **settings: Any
) -> None:
    """Run a `Worker` with these arguments until SIGINT (Ctrl-C) or SIGTERM; running calls end first.

    A second signal cancels them. So does a cancellation of this call; what is finished is committed.
    """
    worker = Worker(topics, function, config, **settings)
    with stop_on_signals(worker.stop):
        await worker.run()


class Worker(WorkerBase):
    """Call `function` with each record of the topics, in up to `concurrency` tasks, as `ottla.Worker` does in threads.

    The function may be a coroutine function. A plain function blocks the event loop while it runs. A call that takes
    longer than `time_limit` seconds is cancelled, and fails with TimeoutError.
    """

    CONSUMER = Consumer
    SHARE_CONSUMER = ShareConsumer
    PRODUCER = Producer

    def __init__(
        self,
        topics: str | Iterable[str],
        function: Function,
        config: Mapping[str, Any] | None = None,
        /,
        **settings: Any,
    ) -> None:
        if settings.get("processes") is not None:
            raise ConfigError(NO_PROCESSES.format(settings["processes"]))
        super().__init__(topics, function, config, **settings)
        self._tasks: dict[Job, asyncio.Task[None]] = {}
        """The task of each running job."""
        self._cancelled: set[Job] = set()
        self._ended = asyncio.Event()
        """Set at the end of each call, for `wait_until_idle`."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = FOREVER

    async def run(self) -> None:
        """Run until `stop`, or until the task is cancelled.

        Raises the error of a record that could neither be processed nor sent to `dead_letters`.
        """
        try:
            await perform_calls(self._loop.run(self))
        except BaseException:
            await perform_calls(self._loop.end_after_error())
            raise
        finally:
            self._is_over = True
            if self._timer is not None:
                self._timer.cancel()
            await self._close()

    def stop(self) -> None:
        """Make `run` wait for the running calls, commit, and return. May be called from any thread or a signal handler.

        After a second call, the running calls are cancelled; their records are processed again later.
        """
        super().stop()

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> Awaitable[None]:
        """Continue where the earlier owners of these partitions have stopped."""
        return perform_calls(self._loop.assign(partitions))

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> Awaitable[None]:
        """Wait for the running calls of these partitions, and commit what is finished."""
        return perform_calls(self._loop.revoke(partitions))

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Drop the records of these partitions: another member may already process them."""
        self._loop.lose(partitions)

    def start_ready(self) -> None:
        """Create a task for each job that may start."""
        while not self._loop.is_stopping and (job := self._schedule.take(time.monotonic())) is not None:
            self._tasks[job] = asyncio.create_task(self._work(job))
        self._set_timer()

    def cancel(self, jobs: Iterable[Job]) -> None:
        """Cancel the tasks of these calls. A call that is already cancelled is not cancelled again."""
        for job in jobs:
            if job in self._tasks and job not in self._cancelled:
                self._cancelled.add(job)
                self._tasks[job].cancel()

    async def wait_until_idle(self, partitions: list[TopicPartition] | None, deadline: float) -> None:
        """Wait until no call is running, of these partitions or at all."""
        while self._schedule.running(partitions) and (left := deadline - time.monotonic()) > 0:
            self._ended.clear()
            try:
                async with asyncio.timeout(left):
                    await self._ended.wait()
            except TimeoutError:
                return

    async def _work(self, job: Job) -> None:
        """Run a job, and then others while there are any."""
        task = self._tasks[job]
        turn = time.monotonic()
        following: Job | None = job
        while following is not None:
            job = following
            self._tasks[job] = task
            try:
                await self._perform(job)
            except BaseException as error:
                log.exception("call failed in an unexpected way partition=%s offset=%d", job.tp, job.record.offset)
                self._loop.end_with(job, error)
            del self._tasks[job]
            self._ended.set()
            self._set_timer()
            if self._loop.is_stopping:
                break
            if self._loop.should_wake():
                self._consumer.wakeup()
            if job in self._cancelled:
                break
            now = time.monotonic()
            if now - turn > TURN_SECONDS:
                await asyncio.sleep(0)
                turn = now
            following = self._schedule.take(now)
        if job in self._cancelled:
            self._cancelled.discard(job)
            self.start_ready()
        if self._loop.is_stopping and not self._is_over:
            self._consumer.wakeup()

    async def _perform(self, job: Job) -> None:
        """Call the function, and send the dead letter if the record is given up."""
        try:
            if not job.is_readable and job.error is not None:
                raise job.error
            await self._call(job)
        except asyncio.CancelledError as error:
            if job in self._cancelled:
                self._loop.release(job)
                return
            letter = self._loop.fail(job, error)  # the function has cancelled itself
        except Exception as error:
            letter = self._loop.fail(job, error)
        else:
            self._loop.finish(job)
            return
        try:
            if letter is not None and await self._send(job, letter):
                self._loop.finish(job)
        except asyncio.CancelledError:
            self._loop.release(job)

    async def _call(self, job: Job) -> None:
        """Call the function within its time limit."""
        limit = self.settings.time_limit
        try:
            async with asyncio.timeout(limit) as scope:
                with self._span(job):
                    result = self._function(job.record)
                    if isawaitable(result):
                        await result
        except TimeoutError as error:
            if scope.expired():
                raise TimeoutError(f"the call took longer than time_limit = {limit:g} s") from error
            raise

    async def _send(self, job: Job, letter: Outgoing) -> bool:
        """Store a dead letter. Return False if the worker ends without it."""
        assert self._producer is not None
        while True:
            try:
                sent = await self._producer.send(letter.topic, letter.value, key=letter.key, headers=letter.headers)
                await sent
                return True
            except KafkaTimeoutError as error:
                if self._loop.is_stopping:
                    self._loop.release(job)
                    return False
                log.warning("dead letter not sent and is retried topic=%s error=%s", letter.topic, error)
            except OttlaError as error:
                log.error("dead letter not sent; the worker ends topic=%s error=%s", letter.topic, error)
                self._loop.end_with(job, error)
                return False

    def _set_timer(self) -> None:
        """Start jobs again when the next retry is due."""
        due = self._schedule.next_retry()
        if due == self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at, self._timer = due, None
        if due < FOREVER:
            span = max(due - time.monotonic(), 0.0)
            self._timer = asyncio.get_running_loop().call_later(span, self._retry)

    def _retry(self) -> None:
        self._timer, self._timer_at = None, FOREVER
        self.start_ready()

    async def _close(self) -> None:
        try:
            await self._consumer.close()
        finally:
            if self._producer is not None:
                await self._producer.close()
