"""Runs many pipelines in one Spark session: starts them one after the other, and minds each by itself.

Six queries that start at once on two cores die of the ten seconds that Spark gives a Python worker to connect back; so the next
starts when the one before has looked for rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, cast

from pyspark.sql import SparkSession

from ottla.config import unknown
from ottla.errors import ConfigError, OttlaError
from ottla.model import TopicPartition
from ottla.pipelines.file.reading import Read
from ottla.pipelines.manager.build import Built, build
from ottla.pipelines.manager.ending import PATIENCE, end_all
from ottla.pipelines.manager.facts import Facts
from ottla.pipelines.manager.life import HELD, State
from ottla.pipelines.manager.needs import needs
from ottla.pipelines.manager.offsets import Way, reset
from ottla.pipelines.manager.preparation import Homes, give_back, prepare
from ottla.pipelines.manager.requests import Requests
from ottla.pipelines.manager.runner import Runner, Told
from ottla.pipelines.manager.topics import ensure_topics
from ottla.pipelines.place import Mistake, PipelineFileError
from ottla.pipelines.under_way import none_under_way

PAUSE = 0.1
"""Seconds between two looks."""
GOING_SECONDS = 10.0
"""How long Java may take to end, once it fails at what is asked of it."""


class Manager:
    """Pipelines that are run together.

    `read_again` gives a pipeline as its file has it now, for a restart; `homes` is what was prepared before Spark was started.
    """

    def __init__(
        self,
        reads: Sequence[Read],
        spark: SparkSession,
        homes: Homes | None = None,
        *,
        once: bool = False,
        tell: Callable[[Told], None] = lambda told: None,
        clock: Callable[[], float] = time.monotonic,
        read_again: Callable[[str], Read] | None = None,
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
            give_back(self.homes)
            raise
        self.runners = [Runner(one, self.homes[one.read.name], once, tell, self._built_again) for one in built]

    def run(self) -> bool:
        """Until all are over or `stop` is called; whether none has failed."""
        try:
            while not self._stop.is_set() and not self.is_over:
                self.step()
                self._stop.wait(PAUSE)
            until = time.monotonic() + PATIENCE
            enders = [partial(runner.stop, until) for runner in reversed(self.runners)]
            end_all(enders, lambda: self._stop.is_set() and goes(self._spark))
        except Exception as error:
            if is_there(self._spark):
                raise
            none_under_way(GOING_SECONDS)
            raise OttlaError(
                "the Java process of Spark has ended; run the pipelines again: they go on where they were"
            ) from error
        finally:
            self.requests.close()
            give_back(self.homes)
        return all(runner.life.state is not State.FAILED for runner in self.runners)

    @property
    def is_over(self) -> bool:
        """Whether nothing will happen any more; what somebody has paused or stopped may be resumed, unless all is to run once."""
        states = [runner.life.state for runner in self.runners]
        return all(state in (State.FAILED, State.DONE) or (self._once and state in HELD) for state in states)

    def step(self) -> None:
        """Do what was asked for, and look at each once; one at a time may start, and what runs once waits for what it reads from."""
        self.requests.serve()
        for number, runner in enumerate(self.runners):
            busy = any(one.is_getting_going for one in self.runners) or self._waits(number)
            runner.step(self._clock(), may_start=not busy)

    def stop(self) -> None:
        """Have `run` end; from a signal or another thread."""
        self._stop.set()

    def facts(self) -> list[Facts]:
        """How all are; from any thread."""
        return [runner.facts for runner in self.runners]

    def runner(self, name: str) -> Runner:
        """The pipeline of this name; ConfigError where there is none."""
        found = next((runner for runner in self.runners if runner.name == name), None)
        if found is None:
            raise ConfigError(f"{unknown('pipeline', name, [one.name for one in self.runners])}")
        return found

    # What follows is called by the manager's own thread: ask for it through `requests`.

    def hold(self, name: str, state: State) -> None:
        """Pause or stop a pipeline, for the next manager as well."""
        runner = self.runner(name)
        if runner.life.state is State.DONE:
            raise ConfigError(f"pipeline {name!r} is done; there is nothing to hold up")
        if runner.life.state is State.STOPPED:
            runner.home.take()
        runner.home.aim(str(state))
        runner.hold(state)

    def resume(self, name: str) -> None:
        """Have a pipeline that is paused or stopped go on."""
        runner = self.runner(name)
        if runner.life.state in HELD:
            self._start_again(runner)
            runner.home.aim(None)

    def restart(self, name: str) -> None:
        """End a pipeline and start it, as its file has it now; PipelineFileError where that will not do: then it goes on as it was."""
        runner = self.runner(name)
        if runner.life.state in HELD:
            raise ConfigError(f"pipeline {name!r} is {runner.life.state}; resume it")
        self._start_again(runner)

    def reset(self, name: str, way: Way, discard_state: bool) -> dict[TopicPartition, int]:
        """Have a pipeline that is stopped begin elsewhere when it is resumed."""
        runner = self.runner(name)
        if runner.life.state is not State.STOPPED:
            raise ConfigError(f"pipeline {name!r} is {runner.life.state}; stop it first, then its offsets can be reset")
        runner.home.take()
        try:
            return reset(runner.built.read, runner.home, way, discard_state=discard_state)
        finally:
            runner.home.give_back()

    def _start_again(self, runner: Runner) -> None:
        held = runner.life.state is State.STOPPED
        if held:
            runner.home.take()
        try:
            read = runner.built.read if self._read_again is None else self._read_again(runner.name)
            ensure_topics([read])
            built = build_all([read], self._spark, self.homes)
            check_checkpoints(built, self.homes)
        except BaseException:
            if held:
                runner.home.give_back()
            raise
        runner.go_on(built[0], self._clock())

    def _built_again(self, built: Built) -> Built:
        """The pipeline as it was read, with the columns that its tables have now."""
        (found,) = build_all([built.read], self._spark, self.homes)
        check_checkpoints([found], self.homes)
        return found

    def _waits(self, number: int) -> bool:
        """Whether one that is to run once is to wait for those before it."""
        mine = self.runners[number].built.read
        before = self.runners[:number] if self._once else []
        return any(needs(mine, one.built.read) for one in before if not (one.life.over or one.life.state in HELD))


def goes(spark: SparkSession) -> bool:
    """Whether the Java process of a session, in which something has failed, is ending."""
    until = time.monotonic() + GOING_SECONDS
    while is_there(spark):
        if time.monotonic() > until:
            return False
        time.sleep(PAUSE)
    return True


def is_there(spark: SparkSession) -> bool:
    """Whether the Java process of a session answers."""
    try:
        return bool(cast(Any, spark)._jvm.java.lang.System.nanoTime())
    except Exception:  # of whatever kind: it speaks to a socket that is closed
        return False


def build_all(reads: Iterable[Read], spark: SparkSession, homes: Homes) -> list[Built]:
    """All of them, or all that is wrong with them."""
    found: list[Built] = []
    mistakes: list[Mistake] = []
    for read in reads:
        try:
            found.append(build(read, spark, homes[read.name].start()))
        except PipelineFileError as error:
            mistakes += error.mistakes
    if mistakes:
        raise PipelineFileError(mistakes)
    return found


def check_checkpoints(built: Iterable[Built], homes: Homes) -> None:
    """Each goes on with a checkpoint of its own making, and is written down as it is now."""
    built = list(built)
    refused = [(one, homes[one.read.name].refusal(one.fingerprint)) for one in built]
    mistakes = [Mistake(one.read.place(), reason) for one, reason in refused if reason is not None]
    if mistakes:
        raise PipelineFileError(mistakes)
    for one in built:
        homes[one.read.name].remember(one.fingerprint)
