"""All histories of one micro-batch: what driver, tasks and brokers can do, in every order.

The world is small: three rows, two tasks, a few attempts, and up to three runs of the driver, which may share the rows
out differently. A driver that is killed and one that is only taken for dead are the same here: what it and its tasks
might still do is tried at every moment. What is decided is decided by `rules`; a `Design` plants the mistakes.

    state = brokers (epoch, open transaction, mark of each name) × attempts of tasks × drivers × committed rows
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.spark.exactly_once.errors import ExactlyOnceError
from ottla.spark.exactly_once.marker import Announcement, Marker
from ottla.spark.exactly_once.rules import (
    STEPS,
    Mode,
    TaskDecision,
    check_outcomes,
    check_same_rows,
    choose_mode,
    decide_task,
)
from ottla.spark.exactly_once.weight import Weight

BATCH = 7
Rows = tuple[str, ...]
Plan = tuple[Rows, ...]
ALL = ("a", "b", "c")
TWO: Plan = (("a", "b"), ("c",))
OTHERS: Plan = (("a",), ("b", "c"))
ONE: Plan = (ALL,)
WORD = "word"
"""The name under which drivers announce."""
ENTERED = Marker(-1, "")


@dataclass(frozen=True)
class Design:
    """A variant of the protocol; the defaults are the implemented one."""

    plans: tuple[Plan, ...] = (TWO, TWO)
    """The plan of each run of the driver."""
    attempts: tuple[int, ...] = (1, 1, 1)
    """The attempts of each task in each run: retries, and speculative attempts."""
    steps: tuple[str, ...] = STEPS
    marks: bool = True
    announced: bool = True
    holding: bool = True
    """True if the driver commits a batch that may be partly written."""
    compared: bool = True
    fenced: bool = True
    """True if the driver fences removed tasks before it reads their marks."""


class Name(NamedTuple):
    """The state of a transactional id and its group at the broker."""

    epoch: int = 0
    open: tuple[Rows, Marker | None] | None = None
    mark: Announcement | Marker | None = None


class Attempt(NamedTuple):
    """One execution of a task; it continues independently of its driver."""

    run: int
    task: int
    step: int = 0
    epoch: int = -1


class Driver(NamedTuple):
    """One execution of the batch."""

    step: str = "init"
    mode: Mode = Mode.COMMIT
    epoch: int = -1
    started: tuple[int, ...] = ()
    """How many attempts of each task."""
    reports: tuple[int | None, ...] = ()
    """The epoch of the transaction that each task holds; -1 for a completed task."""
    ended: int = 0


class State(NamedTuple):
    """Everything."""

    names: tuple[Name, ...] = (Name(), Name(), Name())
    """The state of the two tasks and the drivers."""
    attempts: tuple[Attempt, ...] = ()
    drivers: tuple[Driver, ...] = (Driver(),)
    rows: Rows = ()


class Found(NamedTuple):
    """The result of the exploration of all states."""

    states: int
    fault: str | None
    finished: int


def explore(design: Design, most: int = 2_000_000) -> Found:
    """Go through every state; the first fault ends it."""
    begin = State()
    seen, todo, finished = {begin}, deque([begin]), 0
    while todo:
        for after in following(design, todo.popleft()):
            if after in seen:
                continue
            seen.add(after)
            assert len(seen) < most, "more states than expected"
            todo.append(after)
            if len(set(after.rows)) < len(after.rows):
                return Found(len(seen), "twice", finished)
            if after.drivers[-1].step == "done":
                finished += 1
                if after.rows != ALL:
                    return Found(len(seen), "missing", finished)
    return Found(len(seen), None, finished)


def following(design: Design, state: State) -> Iterator[State]:
    """Every state that one step leads to."""
    if state.drivers[-1].step == "done":
        return
    for run in range(len(state.drivers)):
        yield from driven(design, state, run)
    if len(state.drivers) < len(design.plans):
        yield state._replace(drivers=(*state.drivers, Driver()))
    for index in range(len(state.attempts)):
        yield from tried(design, state, index)


def driven(design: Design, state: State, run: int) -> Iterator[State]:
    """Yield the next steps of a run's driver; an old one that is still alive may continue too."""
    driver, tasks = state.drivers[run], len(design.plans[run])
    if driver.step == "init":
        ready = {"started": (0,) * tasks, "reports": (None,) * tasks}
        if design.announced:
            after, epoch = taken_over(state, -1)
            yield moved(after, run, step="read", epoch=epoch, **ready)
        else:
            yield moved(state, run, step="tasks", **ready)
    elif driver.step == "read":
        kept = state.names[-1].mark
        assert not isinstance(kept, Marker)
        yield moved(state, run, step="announce", mode=choose_mode(BATCH, kept) if design.holding else Mode.COMMIT)
    elif driver.step == "announce" and state.names[-1].epoch == driver.epoch:
        yield moved(put(state, -1, mark=word(run)), run, step="tasks")
    elif driver.step == "tasks":
        yield from attempted(design, state, run)
    elif driver.step == "look":
        yield from looked(design, state, run, tasks)
    elif driver.step == "end":
        yield from ended(state, run)


def attempted(design: Design, state: State, run: int) -> Iterator[State]:
    """Start an attempt of a task, or record that all are done."""
    driver = state.drivers[run]
    for task, started in enumerate(driver.started):
        if started < design.attempts[run]:
            after = moved(state, run, started=swapped(driver.started, task, started + 1))
            yield after._replace(attempts=tuple(sorted((*after.attempts, Attempt(run, task)))))
    if None not in driver.reports:
        yield moved(state, run, step="look" if driver.mode is Mode.HOLD else "done")


def looked(design: Design, state: State, run: int, tasks: int) -> Iterator[State]:
    """Shut out the task that the plan has no more, where there is a trace of it, and look for its mark."""
    markers = {}
    if tasks < 2 and state.names[1].mark is not None:
        state = taken_over(state, 1)[0] if design.fenced else state
        mark = state.names[1].mark
        assert isinstance(mark, Marker)
        markers[1] = mark
    try:
        if design.compared:
            check_outcomes(BATCH, tasks, markers)
        yield moved(state, run, step="end")
    except ExactlyOnceError:
        return


def ended(state: State, run: int) -> Iterator[State]:
    """Commit what the next task holds; a transaction that is not there any more stops the driver."""
    driver = state.drivers[run]
    if driver.ended == len(driver.reports):
        yield moved(state, run, step="done")
        return
    epoch = driver.reports[driver.ended]
    after = state if epoch == -1 else committed(state, driver.ended, epoch)
    if after is not None:
        yield moved(after, run, ended=driver.ended + 1)


def tried(design: Design, state: State, index: int) -> Iterator[State]:
    """Yield the next steps of an attempt. A killed attempt equals one that never continues."""
    attempt = state.attempts[index]
    gone = state._replace(attempts=state.attempts[:index] + state.attempts[index + 1 :])
    rows = design.plans[attempt.run][attempt.task]
    on = attempt._replace(step=attempt.step + 1)
    match design.steps[attempt.step]:
        case "init":
            after, epoch = taken_over(gone, attempt.task)
            yield with_attempt(after, on._replace(epoch=epoch))
        case "enter":
            entered = gone.names[attempt.task].mark is not None
            yield with_attempt(gone if entered else put(gone, attempt.task, mark=ENTERED), on)
        case "read":
            yield read(design, state, gone, attempt, rows, on)
        case "write":
            if gone.names[attempt.task].epoch == attempt.epoch:
                mark = Marker(BATCH, word(attempt.run).token, weight(rows)) if design.marks else None
                yield with_attempt(put(gone, attempt.task, open=(rows, mark)), on)
            else:
                yield gone
        case "end":
            if state.drivers[attempt.run].mode is Mode.HOLD:
                yield reported(gone, attempt, attempt.epoch)
            else:
                done = committed(gone, attempt.task, attempt.epoch)
                yield gone if done is None else reported(done, attempt, -1)


def read(design: Design, state: State, gone: State, attempt: Attempt, rows: Rows, on: Attempt) -> State:
    """Return the task's decision after it has read the marks."""
    word_now, mine = state.names[-1].mark, word(attempt.run)
    mark = state.names[attempt.task].mark
    assert not isinstance(word_now, Marker)
    assert not isinstance(mark, Announcement)
    try:
        move = decide_task(mine, BATCH, word_now if design.announced else mine, mark)
        if move is TaskDecision.COMPARE and design.compared:
            assert mark is not None
            check_same_rows(attempt.task, mark, weight(rows), mark.plan)
    except ExactlyOnceError:
        return gone
    return with_attempt(gone, on) if move is TaskDecision.WRITE else reported(gone, attempt, -1)


def reported(state: State, attempt: Attempt, epoch: int) -> State:
    """Report to the driver, once."""
    driver = state.drivers[attempt.run]
    if driver.step != "tasks" or driver.reports[attempt.task] is not None:
        return state
    return moved(state, attempt.run, reports=swapped(driver.reports, attempt.task, epoch))


def taken_over(state: State, name: int) -> tuple[State, int]:
    """InitProducerId: aborts the open transaction, and fences the previous holder of the id."""
    epoch = state.names[name].epoch + 1
    return put(state, name, epoch=epoch, open=None), epoch


def committed(state: State, name: int, epoch: int | None) -> State | None:
    """EndTxn: rows and mark count; None where the transaction is not that one any more."""
    known = state.names[name]
    if known.open is None or known.epoch != epoch:
        return None
    rows, mark = known.open
    after = put(state, name, open=None, mark=known.mark if mark is None else mark)
    return after._replace(rows=tuple(sorted([*after.rows, *rows])))


def put(state: State, name: int, **changes: object) -> State:
    name %= len(state.names)
    return state._replace(names=swapped(state.names, name, state.names[name]._replace(**changes)))  # type: ignore[arg-type]


def moved(state: State, run: int, **changes: object) -> State:
    return state._replace(drivers=swapped(state.drivers, run, state.drivers[run]._replace(**changes)))  # type: ignore[arg-type]


def with_attempt(state: State, attempt: Attempt) -> State:
    return state._replace(attempts=tuple(sorted((*state.attempts, attempt))))


def swapped(values: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    return (*values[:index], value, *values[index + 1 :])


def word(run: int) -> Announcement:
    return Announcement(BATCH, f"run {run}")


def weight(rows: Rows) -> Weight:
    return Weight(len(rows), len(rows), sum(ord(row) for row in rows))


SOUND: Mapping[str, Design] = {
    "tasks that are tried again or run beside each other": Design(plans=(TWO,), attempts=(2,)),
    "and a second run": Design(plans=(ONE, ONE), attempts=(2, 2)),
    "rows that go to other tasks": Design(plans=(TWO, OTHERS)),
    "a task more": Design(plans=(ONE, TWO)),
    "a task less": Design(plans=(TWO, ONE)),
    "three runs": Design(plans=(ONE, ONE, ONE)),
}
"""The variants that must be correct."""

LARGE: Mapping[str, Design] = {
    "two tasks tried again, and a second run": Design(attempts=(2, 1)),
    "three plans": Design(plans=(ONE, TWO, ONE)),
}
"""The same in larger worlds: 800,000 states, half a minute."""

MISTAKES: Mapping[str, Design] = {
    "there are no marks": Design(marks=False),
    "marks are read before the name is taken over": Design(steps=("read", "init", "write", "end"), attempts=(2, 1)),
    "the plan may change": Design(plans=(TWO, OTHERS), compared=False),
    "each task compares for itself": Design(plans=(TWO, OTHERS), holding=False),
    "tasks that are no more are not looked for": Design(plans=(TWO, ONE), compared=False),
    "tasks that are no more are not shut out": Design(plans=(TWO, ONE), fenced=False),
    "tasks leave no trace": Design(plans=(TWO, ONE), steps=("init", "read", "write", "end")),
    "tasks leave their trace too late": Design(plans=(TWO, ONE), steps=("init", "read", "enter", "write", "end")),
    "nobody announces": Design(plans=(TWO, OTHERS), announced=False),
}
"""The planted mistakes; each writes a row twice."""
