"""`ottla pipeline status | pause | resume | restart | stop | offsets | dead-letters`: inspect and control pipelines."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.command_groups import CommandGroup
from ottla.cli.options import json_option, usage_error
from ottla.cli.output import echo
from ottla.cli.pipelines.options import here_option, one_of, report_file_errors, where_option
from ottla.cli.pipelines.watch import watch
from ottla.cli.tables import show
from ottla.errors import ConfigError

if TYPE_CHECKING:
    from ottla.model import TopicPartition
    from ottla.pipelines.file.reading import PipelineDefinition
    from ottla.pipelines.manager.dead_letters import Sent
    from ottla.pipelines.manager.state_directory import StateDirectory

name_argument = click.argument("name", metavar="NAME")
WAIT_SECONDS = 120.0
"""The time for which a command waits until a pipeline is in the requested state."""
POLL_SECONDS = 0.2
STATUS = ("NAME", "STATE", "BATCH", "ROWS-IN", "ROWS-OUT", "LAG", "SECONDS", "DEAD-LETTERS", "LAST-ERROR")
STATUS_FACTS = ("batch", "rows_in", "rows_out", "lag", "batch_seconds", "dead_letters", "reason")


def find_pipeline(where: Path, name: str) -> tuple[PipelineDefinition, StateDirectory]:
    """Return a pipeline and its home. Only secrets that the pipeline uses need to be resolvable."""
    from ottla.pipelines.file.reading import AS_WRITTEN, checkpoints_of, read_pipelines
    from ottla.pipelines.manager.state_directory import StateDirectory

    with report_file_errors():
        read = one_of(read_pipelines(where, AS_WRITTEN), name)
    return read, StateDirectory(checkpoints_of(read), read.name)


def find_state_directory(where: Path, name: str) -> StateDirectory:
    """Return the home of a pipeline, which is enough to control it in another process."""
    return find_pipeline(where, name)[1]


@click.command()
@where_option
@json_option
@click.option(
    "--watch",
    "is_watched",
    is_flag=True,
    help="Update until Ctrl-C: a view in a terminal, otherwise a JSON line per change.",
)
def status(where: Path, in_json: bool, is_watched: bool) -> None:
    """Print the last known state of the pipelines of a file or a folder."""
    from ottla.pipelines.file.reading import AS_WRITTEN, checkpoints_of, read_pipelines
    from ottla.pipelines.manager.state_directory import StateDirectory

    with report_file_errors():
        reads = read_pipelines(where, AS_WRITTEN)
    homes = [StateDirectory(checkpoints_of(read), read.name) for read in reads]
    if is_watched:
        watch(STATUS, lambda: [status_row(home) for home in homes], in_json=in_json)
    else:
        show(STATUS, [status_row(home) for home in homes], in_json=in_json)


def status_row(home: StateDirectory) -> list[Any]:
    """Return the row of a pipeline; a running state without a process is shown as killed."""
    known = home.status() or {}
    state = known.get("state", "new")
    if state in ("starting", "running", "waiting") and not home.is_locked():
        state = "killed"
    return [home.name, state, *(known.get(name) for name in STATUS_FACTS)]


@click.command()
@name_argument
@here_option
def pause(name: str, where: Path) -> None:
    """Pause pipeline NAME until it is resumed, even if its manager restarts."""
    print_new_state(where, name, "paused", "pause")


@click.command()
@name_argument
@here_option
def stop(name: str, where: Path) -> None:
    """Stop pipeline NAME: like pause, and its offsets can be reset."""
    print_new_state(where, name, "stopped", "stop")


def print_new_state(where: Path, name: str, state: str, verb: str) -> None:
    """Pause or stop a pipeline through its manager, or for the next manager, and print the result."""
    echo(set_state(find_state_directory(where, name), state, verb))


def set_state(home: StateDirectory, state: str, verb: str) -> str:
    """Pause or stop a pipeline and return a sentence with the result."""
    if send_to_manager(home, state, verb):
        return f"{home.name} is {state}"
    return f"{home.name} is {state}; it does not run now, and the next `ottla pipeline run` keeps this state"


def send_to_manager(home: StateDirectory, set_target: str | None, verb: str) -> bool:
    """Send the request to the manager of a pipeline. If no manager runs, store it for the next one and return False."""
    from ottla.pipelines.manager.control import manager_of

    manager = manager_of(home)
    if manager is None:
        with locked(home):
            home.set_target(set_target)
        return False
    manager.request_connector("PUT", home.name, verb)
    return True


@click.command()
@name_argument
@here_option
def resume(name: str, where: Path) -> None:
    """Resume pipeline NAME at the position where it was paused or stopped."""
    echo(resume_pipeline(find_state_directory(where, name)))


def resume_pipeline(home: StateDirectory) -> str:
    """Resume a pipeline and return a sentence with the result."""
    began = time.time()
    if send_to_manager(home, None, "resume"):
        return f"{home.name} is {await_start(home, began)}"
    return f"{home.name} does not run now; the next `ottla pipeline run` starts it"


@click.command()
@name_argument
@here_option
def restart(name: str, where: Path) -> None:
    """Stop pipeline NAME and start it again with the current content of its file."""
    from ottla.pipelines.manager.control import manager_of

    home = find_state_directory(where, name)
    manager = manager_of(home)
    if manager is None:
        raise ConfigError(f"pipeline {name!r} does not run: start it with `ottla pipeline run {where}`")
    began = time.time()
    manager.request_connector("POST", name, "restart")
    echo(f"{name} is {await_start(home, began)}")


def await_start(home: StateDirectory, began: float) -> str:
    """Return the state of a pipeline after its start; raise ClickException if it failed."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        known: Mapping[str, Any] = home.status() or {}
        if known.get("state") in ("running", "done", "paused", "stopped"):
            return str(known["state"])
        if known.get("failed_at", 0.0) >= began:
            raise click.ClickException(f"{home.name} failed: {known.get('reason')}")
        time.sleep(POLL_SECONDS)
    return f"still {known.get('state')}; see `ottla pipeline status`"


@contextmanager
def locked(home: StateDirectory) -> Iterator[None]:
    """Hold the lock of a stopped pipeline's home while a command changes it."""
    home.lock(f"stop it first, by `ottla pipeline stop {home.name}`")
    try:
        yield
    finally:
        home.unlock()


@click.group(cls=CommandGroup)
def offsets() -> None:
    """Show and reset the source offsets of a pipeline."""


@offsets.command("show")
@name_argument
@here_option
@json_option
def show_offsets(name: str, where: Path, in_json: bool) -> None:
    """Print the offsets at which pipeline NAME continues."""
    from ottla.pipelines.manager.offsets import position_of, topic_offsets

    read, home = find_pipeline(where, name)
    position = position_of(home.checkpoint)
    if position is None:
        raise click.ClickException(f"{name} has no offsets: it has not finished a batch yet")
    by_topic = topic_offsets(position)
    if by_topic:
        rows: list[tuple[Any, ...]] = [(tp.topic, tp.partition, offset) for tp, offset in sorted(by_topic.items())]
        show(("TOPIC", "PARTITION", "OFFSET"), rows, in_json=in_json)
        return
    source = read.model.source.describe()
    shown = [(source, one if in_json else json.dumps(one, ensure_ascii=False)) for one in position.offsets]
    show(("SOURCE", "OFFSET"), shown, in_json=in_json)


@offsets.command("reset")
@name_argument
@here_option
@click.option("--to-earliest", is_flag=True, help="To the first record; a source without topics restarts.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option(
    "--to-offsets", metavar="JSON", help="""To these, such as '{"orders": {"0": 23}}'; others do not change."""
)
@click.option("--discard-state", is_flag=True, help="Allow it for an aggregation, and clear its state.")
@json_option
def reset_offsets(
    name: str,
    where: Path,
    to_earliest: bool,
    to_latest: bool,
    to_offsets: str | None,
    discard_state: bool,
    in_json: bool,
) -> None:
    """Reset the source offsets of pipeline NAME, which must be stopped."""
    from ottla.pipelines.manager.offsets import ResetTarget, reset

    if to_earliest + to_latest + (to_offsets is not None) != 1:
        raise usage_error("expected exactly one of --to-earliest, --to-latest, --to-offsets")
    way = ResetTarget("earliest" if to_earliest else "latest" if to_latest else "given", to_offsets)
    read, home = find_pipeline(where, name)
    with locked(home):
        found: Mapping[TopicPartition, int] = reset(read, home, way, discard_state=discard_state)
    if not found and not in_json:
        echo(f"{name} starts from the beginning when it is resumed")
        return
    rows = [(tp.topic, tp.partition, offset) for tp, offset in sorted(found.items())]
    show(("TOPIC", "PARTITION", "NEW-OFFSET"), rows, in_json=in_json)


@click.group("dead-letters", cls=CommandGroup)
def dead_letters() -> None:
    """Show the records that a pipeline could not process, and send them again."""


@dead_letters.command("show")
@name_argument
@here_option
@click.option(
    "--max", "most", type=click.IntRange(1), default=20, show_default=True, help="The number of last ones to print."
)
@json_option
def show_letters(name: str, where: Path, most: int, in_json: bool) -> None:
    """Print the dead letters of pipeline NAME with their errors."""
    from ottla.pipelines.manager.dead_letters import read_dead_letters

    read, home = find_pipeline(where, name)
    rows = [
        (one.place, one.came_from, one.stage, one.reason, text(one.record.raw_key), text(one.record.raw_value))
        for one in read_dead_letters(read, home)[-most:]
    ]
    show(("LETTER", "CAME-FROM", "STAGE", "REASON", "KEY", "VALUE"), rows, in_json=in_json)


@dead_letters.command("resend")
@name_argument
@here_option
def resend_letters(name: str, where: Path) -> None:
    """Send the dead letters of pipeline NAME to their source topics again, each exactly once."""
    from ottla.pipelines.manager.dead_letters import resend

    read, home = find_pipeline(where, name)
    echo(resend_summary(resend(read, home)))


def resend_summary(sent: Sent) -> str:
    """Return a sentence about the number of resent dead letters."""
    return f"{sent.sent} sent again" + (
        f", {sent.left} left, since they are truncated or a table rejected them" if sent.left else ""
    )


def text(data: bytes | None) -> str | None:
    """Return bytes as text; bytes that are not UTF-8 are escaped."""
    return None if data is None else data.decode("utf-8", errors="backslashreplace")


COMMANDS: tuple[click.Command, ...] = (status, pause, resume, restart, stop, offsets, dead_letters)
