"""The public worker for blocking functions: they run in threads, or in processes that a thread each waits for.

The thread that calls `run` polls and commits. Only `stop` may be called from another thread or a signal handler.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from ottla.client.consumer import Consumer
from ottla.client.process.calls import perform_calls
from ottla.client.process.outgoing import Outgoing
from ottla.client.process.stop_signals import stop_on_signals
from ottla.client.producer import Producer
from ottla.client.share import ShareConsumer
from ottla.client.work.call_process import CallProcess, NotReadyError, pickle_function
from ottla.client.work.state.schedule import Job
from ottla.client.work.worker_face import Function, WorkerBase
from ottla.errors import ConfigError, KafkaTimeoutError, OttlaError, WorkerProcessError
from ottla.model import FOREVER, TopicPartition

log = logging.getLogger(__name__)

NO_TIME_LIMIT = (
    "time_limit={!r} with functions in threads, which cannot be interrupted: set processes, or use ottla.aio.work"
)


def work(
    topics: str | Iterable[str], function: Function, config: Mapping[str, Any] | None = None, /, **settings: Any
) -> None:
    """Run a `Worker` with these arguments until SIGINT (Ctrl-C) or SIGTERM; running calls end first.

    A second signal ends it without waiting for them.
    """
    worker = Worker(topics, function, config, **settings)
    with stop_on_signals(worker.stop):
        worker.run()


class Worker(WorkerBase):
    """Call `function` with each record of the topics, in up to `concurrency` threads or in `processes` processes.

    A record is finished when the function returns. If it raises, the call is repeated as `retries` says; after that the
    record is sent to the topic `dead_letters`, or ends the worker if there is none. With `order="key"` (the default)
    records with the same key are processed one after the other, with `"partition"` all of a partition, with `"none"` in
    any order. Offsets are committed every `commit_interval_ms`, never beyond an unfinished record, so each record is
    processed at least once.

    With `processes`, this process polls and commits, and others run the function, for which it is sent to them by pickle. A call
    that takes longer than `time_limit` seconds ends with its process; so does one that is not over when the worker has to end.
    If a process ends during a call, the call has failed and is repeated as `retries` says.

    `config` and further keywords are settings of the consumer; those that all clients have are also used by the producer
    of dead letters.
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
        if iscoroutinefunction(function):
            raise TypeError(f"{function.__qualname__} is a coroutine function: only ottla.aio.work can await it")
        if settings.get("time_limit") is not None and settings.get("processes") is None:
            raise ConfigError(NO_TIME_LIMIT.format(settings["time_limit"]))
        if settings.get("processes") is not None:
            pickle_function(function)
        lock = threading.RLock()
        self._changed = threading.Condition(lock)
        """Notified when a job may start, or a retry is due earlier."""
        self._ended = threading.Condition(lock)
        """Notified at the end of each call, for `wait_until_idle`."""
        super().__init__(topics, function, config, **settings)
        self._processes: list[CallProcess] = [CallProcess(function) for _ in range(self.settings.processes or 0)]
        """A process for each thread; none if the threads run the function themselves."""
        self._calls: dict[Job, CallProcess] = {}
        """The process of each running job."""
        self._cancelled: set[Job] = set()

    def run(self) -> None:
        """Run until `stop`. Raises the error of a record that could neither be processed nor sent to `dead_letters`."""
        processes: list[CallProcess | None] = [*self._processes] or [None] * self.settings.concurrency
        threads = [
            threading.Thread(target=self._work, args=[process], name=f"ottla-work-{number}", daemon=True)
            for number, process in enumerate(processes)
        ]
        try:
            for process in self._processes:
                process.start()
            for thread in threads:
                thread.start()
            perform_calls(self._loop.run(self))
        except BaseException:
            perform_calls(self._loop.end_after_error())
            raise
        finally:
            self._is_over = True
            with self._changed:
                self._changed.notify_all()
            self._end_processes(threads)
            self._close()

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        """Continue where the earlier owners of these partitions have stopped."""
        perform_calls(self._loop.assign(partitions))

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        """Wait for the running calls of these partitions, and commit what is finished."""
        perform_calls(self._loop.revoke(partitions))

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        """Drop the records of these partitions: another member may already process them."""
        self._loop.lose(partitions)

    def start_ready(self) -> None:
        """Wake as many threads as there are jobs for."""
        with self._changed:
            self._changed.notify(min(self._schedule.ready_count, self._schedule.room))

    def cancel(self, jobs: Iterable[Job]) -> None:
        """End the processes of these calls. A thread cannot be cancelled: the result of its call has no effect."""
        if not self._processes:
            return
        with self._changed:
            for job in jobs:
                self._cancelled.add(job)
                if job in self._calls:
                    self._calls[job].kill()

    def wait_until_idle(self, partitions: list[TopicPartition] | None, deadline: float) -> None:
        """Block until no call is running, of these partitions or at all."""
        with self._ended:
            while self._schedule.running(partitions) and (left := deadline - time.monotonic()) > 0:
                self._ended.wait(left)

    def _make_guard(self) -> AbstractContextManager[Any]:
        return self._changed

    def _work(self, process: CallProcess | None) -> None:
        """Run jobs in a thread until the worker stops."""
        while (job := self._next_job()) is not None:
            try:
                self._perform(job, process)
            except BaseException as error:
                log.exception("worker thread failed partition=%s offset=%d", job.tp, job.record.offset)
                self._loop.end_with(job, error)
            with self._changed:
                self._changed.notify(1)
                self._ended.notify_all()
            if self._loop.should_wake() and not self._is_over:
                self._consumer.wakeup()

    def _next_job(self) -> Job | None:
        with self._changed:
            while not self._loop.is_stopping:
                now = time.monotonic()
                job = self._schedule.take(now)
                if job is not None:
                    return job
                due = self._schedule.next_retry()
                self._changed.wait(None if due == FOREVER else max(due - now, 0.0))
        return None

    def _perform(self, job: Job, process: CallProcess | None) -> None:
        """Call the function, and send the dead letter if the record is given up."""
        try:
            if not job.is_readable and job.error is not None:
                raise job.error
            if process is None:
                with self._span(job):
                    self._function(job.record)
            else:
                process.wait_until_ready()
                self._call_in_process(job, process)
        except NotReadyError as error:
            self._loop.end_with(job, error)
            return
        except Exception as error:
            if job in self._cancelled:
                self._loop.release(job)
                return
            letter = self._loop.fail(job, error)
            if letter is None or not self._send(job, letter):
                return
        finally:
            self._cancelled.discard(job)
        self._loop.finish(job)

    def _call_in_process(self, job: Job, process: CallProcess) -> None:
        with self._changed:
            if job.is_dropped or self._is_over:
                self._cancelled.add(job)
            if job in self._cancelled:
                raise WorkerProcessError("the call was cancelled before it started")
            self._calls[job] = process
        try:
            with self._span(job):
                process.call(job.record, self.settings.time_limit)
        finally:
            with self._changed:
                del self._calls[job]

    def _end_processes(self, threads: list[threading.Thread]) -> None:
        """End all processes, and the calls that are still running there."""
        if not self._processes:
            return
        self.cancel(list(self._calls))
        for process in self._processes:
            process.end()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        for process in self._processes:
            process.close()

    def _send(self, job: Job, letter: Outgoing) -> bool:
        """Store a dead letter. Return False if the worker ends without it."""
        assert self._producer is not None
        send: Callable[[], Any] = partial(
            self._producer.send, letter.topic, letter.value, key=letter.key, headers=letter.headers
        )
        while True:
            try:
                send().result()
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

    def _close(self) -> None:
        try:
            self._consumer.close()
        finally:
            if self._producer is not None:
                self._producer.close()
