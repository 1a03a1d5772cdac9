"""Runs many pipelines in one Spark session: starts them one after the other, and supervises each separately.

Six queries started at once on two cores fail, because Spark gives a Python worker ten seconds to connect. So the next
pipeline starts after the previous one has checked for rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import SparkSession

from ottla.config import unknown
from ottla.errors import ConfigError, OttlaError
from ottla.model import TopicPartition
from ottla.pipelines.file.reading import PipelineDefinition
from ottla.pipelines.manager.build import Built, build, find_schemas
from ottla.pipelines.manager.ending import PATIENCE, end_all
from ottla.pipelines.manager.facts import Facts
from ottla.pipelines.manager.lifecycle import HELD, PipelineState
from ottla.pipelines.manager.offsets import ResetTarget, reset
from ottla.pipelines.manager.preparation import StateDirectories, prepare, unlock
from ottla.pipelines.manager.registered_schemas import changes_of, with_changes
from ottla.pipelines.manager.requests import Requests
from ottla.pipelines.manager.runner import PipelineEvent, Runner
from ottla.pipelines.manager.topics import ensure_topics
from ottla.pipelines.native_writes import wait_for_native_writes
from ottla.pipelines.place import Mistake, PipelineFileError
from ottla.pipelines.sinks.topic import TopicSinkBase
from ottla.pipelines.sources import Source
from ottla.pipelines.sources.topic import TopicBase

if TYPE_CHECKING:
    from ottla.schemas import Schema

PAUSE = 0.1
"""Seconds between two steps."""
GOING_SECONDS = 10.0
"""The time that Java may take to end, after the first failed call to it."""


class Manager:
    """Pipelines that run together.

    `read_again` returns a pipeline as its file defines it now, for a restart; `homes` are state directories prepared
    before Spark was started.
    """

    def __init__(
        self,
        reads: Sequence[PipelineDefinition],
        spark: SparkSession,
        homes: StateDirectories | None = None,
        *,
        once: bool = False,
        on_event: Callable[[PipelineEvent], None] = lambda event: None,
        clock: Callable[[], float] = time.monotonic,
        read_again: Callable[[str], PipelineDefinition] | None = None,
    ) -> None:
        self._stop = threading.Event()
        self._clock = clock
        self._once = once
        self._spark = spark
        self._read_again = read_again
        self.requests = Requests()
        self.homes = prepare(reads) if homes is None else homes
        try:
            built = build_all(reads, spark, self.homes)
            check_checkpoints(built, self.homes)
        except BaseException:
            unlock(self.homes)
            raise
        self.runners = [Runner(one, self.homes[one.read.name], once, on_event, self._built_again) for one in built]

    def run(self) -> bool:
        """Run until all pipelines are over or `stop` is called; return False if one has failed."""
        try:
            while not self._stop.is_set() and not self.is_over:
                self.step()
                self._stop.wait(PAUSE)
            until = time.monotonic() + PATIENCE
            enders = [partial(runner.stop, until) for runner in reversed(self.runners)]
            end_all(enders, lambda: self._stop.is_set() and is_java_ending(self._spark))
        except Exception as error:
            if is_java_running(self._spark):
                raise
            wait_for_native_writes(GOING_SECONDS)
            raise OttlaError(
                "Spark's Java process has ended; run the pipelines again: they continue from their checkpoints"
            ) from error
        finally:
            self.requests.close()
            unlock(self.homes)
        return all(runner.lifecycle.state is not PipelineState.FAILED for runner in self.runners)

    @property
    def is_over(self) -> bool:
        """True if no pipeline will run again by itself or on request.

        Paused and stopped pipelines can be resumed, unless all run once.
        """
        states = [runner.lifecycle.state for runner in self.runners]
        return all(
            state in (PipelineState.FAILED, PipelineState.DONE) or (self._once and state in HELD) for state in states
        )

    def step(self) -> None:
        """Serve requests, and check each pipeline once.

        Only one may be starting, and a pipeline that runs once waits for those it reads from.
        """
        self.requests.serve()
        for number, runner in enumerate(self.runners):
            busy = any(one.is_starting for one in self.runners) or self._should_wait(number)
            runner.step(self._clock(), may_start=not busy)

    def stop(self) -> None:
        """Make `run` return; called from a signal handler or another thread."""
        self._stop.set()

    def facts(self) -> list[Facts]:
        """Return the status of all pipelines; thread-safe."""
        return [runner.facts for runner in self.runners]

    def runner(self, name: str) -> Runner:
        """Return the pipeline of this name; ConfigError if there is none."""
        found = next((runner for runner in self.runners if runner.name == name), None)
        if found is None:
            raise ConfigError(f"{unknown('pipeline', name, [one.name for one in self.runners])}")
        return found

    # The following methods must be called in the manager's own thread: use `requests`.

    def pause_or_stop(self, name: str, state: PipelineState) -> None:
        """Pause or stop a pipeline, also for the next manager."""
        runner = self.runner(name)
        if runner.lifecycle.state is PipelineState.DONE:
            raise ConfigError(f"pipeline {name!r} is done; it cannot be paused or stopped")
        if runner.lifecycle.state is PipelineState.STOPPED:
            runner.home.lock()
        runner.home.set_target(str(state))
        runner.pause_or_stop(state)

    def resume(self, name: str) -> None:
        """Resume a pipeline that is paused or stopped."""
        runner = self.runner(name)
        if runner.lifecycle.state in HELD:
            self._start_again(runner)
            runner.home.set_target(None)

    def restart(self, name: str) -> None:
        """Restart a pipeline as its file defines it now; PipelineFileError if that is not valid, and the pipeline continues unchanged."""
        runner = self.runner(name)
        if runner.lifecycle.state in HELD:
            raise ConfigError(f"pipeline {name!r} is {runner.lifecycle.state}; resume it")
        self._start_again(runner)

    def reset(self, name: str, way: ResetTarget, discard_state: bool) -> dict[TopicPartition, int]:
        """Set the start of a stopped pipeline for when it is resumed."""
        runner = self.runner(name)
        if runner.lifecycle.state is not PipelineState.STOPPED:
            raise ConfigError(
                f"pipeline {name!r} is {runner.lifecycle.state}; stop it first, then its offsets can be reset"
            )
        runner.home.lock()
        try:
            return reset(runner.built.read, runner.home, way, discard_state=discard_state)
        finally:
            runner.home.unlock()

    def _start_again(self, runner: Runner) -> None:
        held = runner.lifecycle.state is PipelineState.STOPPED
        if held:
            runner.home.lock()
        try:
            read = runner.built.read if self._read_again is None else self._read_again(runner.name)
            ensure_topics([read])
            built = build_all([read], self._spark, self.homes)
            check_checkpoints(built, self.homes)
        except BaseException:
            if held:
                runner.home.unlock()
            raise
        runner.restart(built[0], self._clock())

    def _built_again(self, built: Built) -> Built:
        """Return the pipeline as it was read, built with the current columns of its tables."""
        (found,) = build_all([built.read], self._spark, self.homes)
        check_checkpoints([found], self.homes)
        return found

    def _should_wait(self, number: int) -> bool:
        """Return True if a pipeline that runs once must wait for earlier ones."""
        mine = self.runners[number].built.read
        before = self.runners[:number] if self._once else []
        return any(
            should_wait_for(mine, one.built.read)
            for one in before
            if not (one.lifecycle.is_over or one.lifecycle.state in HELD)
        )


def is_java_ending(spark: SparkSession) -> bool:
    """Return True if the session's Java process, after a failed call, is ending."""
    until = time.monotonic() + GOING_SECONDS
    while is_java_running(spark):
        if time.monotonic() > until:
            return False
        time.sleep(PAUSE)
    return True


def is_java_running(spark: SparkSession) -> bool:
    """Return True if the session's Java process answers."""
    try:
        return bool(cast(Any, spark)._jvm.java.lang.System.nanoTime())
    except Exception:  # any error of a closed socket
        return False


def build_all(reads: Iterable[PipelineDefinition], spark: SparkSession, homes: StateDirectories) -> list[Built]:
    """Return all pipelines built; PipelineFileError with all mistakes."""
    reads = list(reads)
    found: dict[str, Built] = {}
    pending: dict[str, Schema | None] = {}
    mistakes: list[Mistake] = []
    for read in writers_first(reads):
        changes: list[str] = []
        try:
            schemas = find_schemas(read, pending)
            changes = list(changes_of(read, schemas))
            built = build(read, spark, homes[read.name].start(), schemas)
        except PipelineFileError as error:
            mistakes += with_changes(error.mistakes, changes)
        else:
            found[read.name] = built
            pending |= built.written
    if mistakes:
        raise PipelineFileError(mistakes)
    return [found[read.name] for read in reads]


def writers_first(reads: Sequence[PipelineDefinition]) -> Iterator[PipelineDefinition]:
    """Yield pipelines that others read from before those, if they do not read from each other."""
    left = list(reads)
    while left:
        chosen = next((one for one in left if not any(reads_from(one, other) for other in left)), left[0])
        left.remove(chosen)
        yield chosen


def reads_from(reader: PipelineDefinition, writer: PipelineDefinition) -> bool:
    return reader is not writer and should_wait_for(reader, writer)


def check_checkpoints(built: Iterable[Built], homes: StateDirectories) -> None:
    """Check that each pipeline fits its checkpoint, and write its fingerprint."""
    built = list(built)
    refused = [(one, homes[one.read.name].find_conflict(one.fingerprint)) for one in built]
    mistakes = [Mistake(one.read.place(), reason) for one, reason in refused if reason is not None]
    if mistakes:
        raise PipelineFileError(mistakes)
    for one in built:
        homes[one.read.name].write_fingerprint(one.fingerprint)
        homes[one.read.name].write_schemas(one.schemas)


RATE = "rate"


def should_wait_for(reader: PipelineDefinition, writer: PipelineDefinition) -> bool:
    """Return True if `reader` must wait for the end of `writer`, when both run once."""
    return any(can_feed(writer, source) for source in (reader.model.source, *reader.model.inputs.values()))


def can_feed(writer: PipelineDefinition, source: Source) -> bool:
    """Return True if the source may read the data that `writer` writes."""
    sink = writer.model.sink
    if source.type == RATE:
        return False
    if not isinstance(source, TopicBase):
        return not isinstance(sink, TopicSinkBase)
    if not isinstance(sink, TopicSinkBase):
        return False
    return source.topic is None or writer.model.is_routed or sink.topic is None or sink.topic in source.names()
