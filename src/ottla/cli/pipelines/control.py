"""`ottla pipeline status | pause | resume | restart | stop | offsets | dead-letters`: what is asked of pipelines that run, or did."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ottla.cli.options import json_option, senseless
from ottla.cli.output import echo
from ottla.cli.pipelines.options import here_option, one_of, told_line_by_line, where_option
from ottla.cli.pipelines.watch import watch
from ottla.cli.tables import show
from ottla.cli.verbs import Verbs
from ottla.errors import ConfigError

if TYPE_CHECKING:
    from ottla.model import TopicPartition
    from ottla.pipelines.file.reading import Read
    from ottla.pipelines.manager.home import Home
    from ottla.pipelines.manager.letters import Sent

name_argument = click.argument("name", metavar="NAME")
WAIT_SECONDS = 120.0
"""How long a command waits for a pipeline to be where it is to be."""
LOOK_SECONDS = 0.2
STATUS = ("NAME", "STATE", "BATCH", "ROWS-IN", "ROWS-OUT", "LAG", "SECONDS", "DEAD-LETTERS", "LAST-ERROR")
STATUS_FACTS = ("batch", "rows_in", "rows_out", "lag", "batch_seconds", "dead_letters", "reason")


def meant(where: Path, name: str) -> tuple[Read, Home]:
    """The pipeline that a command is about; of the file's secrets only those need be there that it uses."""
    from ottla.pipelines.file.reading import AS_WRITTEN, checkpoints_of, read_pipelines
    from ottla.pipelines.manager.home import Home

    with told_line_by_line():
        read = one_of(read_pipelines(where, AS_WRITTEN), name)
    return read, Home(checkpoints_of(read), read.name)


def home_of(where: Path, name: str) -> Home:
    """Only the folder of its checkpoints: what runs elsewhere needs no more to be told of it."""
    return meant(where, name)[1]


@click.command()
@where_option
@json_option
@click.option(
    "--watch", "is_watched", is_flag=True, help="Until Ctrl-C: a view in a terminal, a line of JSON a change elsewhere."
)
def status(where: Path, in_json: bool, is_watched: bool) -> None:
    """Print how the pipelines of a file or a folder are, or were when last heard of."""
    from ottla.pipelines.file.reading import AS_WRITTEN, checkpoints_of, read_pipelines
    from ottla.pipelines.manager.home import Home

    with told_line_by_line():
        reads = read_pipelines(where, AS_WRITTEN)
    homes = [Home(checkpoints_of(read), read.name) for read in reads]
    if is_watched:
        watch(STATUS, lambda: [status_row(home) for home in homes], in_json=in_json)
    else:
        show(STATUS, [status_row(home) for home in homes], in_json=in_json)


def status_row(home: Home) -> list[Any]:
    """One pipeline; what was running and is run by nobody now was killed."""
    known = home.status() or {}
    state = known.get("state", "new")
    if state in ("starting", "running", "waiting") and not home.is_taken():
        state = "killed"
    return [home.name, state, *(known.get(name) for name in STATUS_FACTS)]


@click.command()
@name_argument
@here_option
def pause(name: str, where: Path) -> None:
    """Have pipeline NAME wait until it is resumed, also when its manager starts anew."""
    hold(where, name, "paused", "pause")


@click.command()
@name_argument
@here_option
def stop(name: str, where: Path) -> None:
    """Stop pipeline NAME: as pause, and its offsets can be reset."""
    hold(where, name, "stopped", "stop")


def hold(where: Path, name: str, state: str, verb: str) -> None:
    """Have it be so, in its manager, or for the next one."""
    echo(now_held(home_of(where, name), state, verb))


def now_held(home: Home, state: str, verb: str) -> str:
    """Have it be so, and say it."""
    if asked(home, state, verb):
        return f"{home.name} is {state}"
    return f"{home.name} is {state}; nobody runs it now, and the next `ottla pipeline run` leaves it so"


def asked(home: Home, aim: str | None, verb: str) -> bool:
    """Ask the manager of a pipeline; where nobody runs it, and so False, leave word for the next one."""
    from ottla.pipelines.manager.control import manager_of

    manager = manager_of(home)
    if manager is None:
        with held(home):
            home.aim(aim)
        return False
    manager.connector("PUT", home.name, verb)
    return True


@click.command()
@name_argument
@here_option
def resume(name: str, where: Path) -> None:
    """Have pipeline NAME go on where it was when it was paused or stopped."""
    echo(now_resumed(home_of(where, name)))


def now_resumed(home: Home) -> str:
    """Have it go on, and say what became of it."""
    began = time.time()
    if asked(home, None, "resume"):
        return f"{home.name} is {reached(home, began)}"
    return f"nobody runs {home.name} now; the next `ottla pipeline run` starts it"


@click.command()
@name_argument
@here_option
def restart(name: str, where: Path) -> None:
    """End pipeline NAME and start it, as its file has it now."""
    from ottla.pipelines.manager.control import manager_of

    home = home_of(where, name)
    manager = manager_of(home)
    if manager is None:
        raise ConfigError(f"nobody runs pipeline {name!r}; start it with `ottla pipeline run {where}`")
    began = time.time()
    manager.connector("POST", name, "restart")
    echo(f"{name} is {reached(home, began)}")


def reached(home: Home, began: float) -> str:
    """What became of one that was started; a failure is told as such."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        known: Mapping[str, Any] = home.status() or {}
        if known.get("state") in ("running", "done", "paused", "stopped"):
            return str(known["state"])
        if known.get("failed_at", 0.0) >= began:
            raise click.ClickException(f"{home.name} failed: {known.get('reason')}")
        time.sleep(LOOK_SECONDS)
    return f"still {known.get('state')}; see `ottla pipeline status`"


@contextmanager
def held(home: Home) -> Iterator[None]:
    """The home of a pipeline that nobody runs, while a command changes it."""
    home.take(f"stop it first, by `ottla pipeline stop {home.name}`")
    try:
        yield
    finally:
        home.give_back()


@click.group(cls=Verbs)
def offsets() -> None:
    """Show how far a pipeline is in its source, and have it begin elsewhere."""


@offsets.command("show")
@name_argument
@here_option
@json_option
def show_offsets(name: str, where: Path, in_json: bool) -> None:
    """Print the offsets at which pipeline NAME goes on."""
    from ottla.pipelines.manager.offsets import position_of, topic_offsets

    read, home = meant(where, name)
    position = position_of(home.checkpoint)
    if position is None:
        raise click.ClickException(f"{name} has not finished a batch yet: it has no offsets")
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
@click.option("--to-earliest", is_flag=True, help="To the first record; what is no topic begins anew.")
@click.option("--to-latest", is_flag=True, help="To the end.")
@click.option("--to-offsets", metavar="JSON", help="""To these, such as '{"orders": {"0": 23}}'; others stay.""")
@click.option("--discard-state", is_flag=True, help="Also of an aggregation, whose state begins anew.")
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
    """Have pipeline NAME, which must be stopped, begin elsewhere when it goes on."""
    from ottla.pipelines.manager.offsets import Way, reset

    if to_earliest + to_latest + (to_offsets is not None) != 1:
        raise senseless("give exactly one of --to-earliest, --to-latest, --to-offsets")
    way = Way("earliest" if to_earliest else "latest" if to_latest else "given", to_offsets)
    read, home = meant(where, name)
    with held(home):
        found: Mapping[TopicPartition, int] = reset(read, home, way, discard_state=discard_state)
    if not found and not in_json:
        echo(f"{name} begins anew when it goes on")
        return
    rows = [(tp.topic, tp.partition, offset) for tp, offset in sorted(found.items())]
    show(("TOPIC", "PARTITION", "NEW-OFFSET"), rows, in_json=in_json)


@click.group("dead-letters", cls=Verbs)
def dead_letters() -> None:
    """Look at the records that a pipeline could not digest, and send them again."""


@dead_letters.command("show")
@name_argument
@here_option
@click.option("--max", "most", type=click.IntRange(1), default=20, show_default=True, help="The last so many.")
@json_option
def show_letters(name: str, where: Path, most: int, in_json: bool) -> None:
    """Print the dead letters of pipeline NAME with what was wrong with them."""
    from ottla.pipelines.manager.letters import letters_of

    read, home = meant(where, name)
    rows = [
        (one.place, one.came_from, one.stage, one.reason, text(one.record.raw_key), text(one.record.raw_value))
        for one in letters_of(read, home)[-most:]
    ]
    show(("LETTER", "CAME-FROM", "STAGE", "REASON", "KEY", "VALUE"), rows, in_json=in_json)


@dead_letters.command("resend")
@name_argument
@here_option
def resend_letters(name: str, where: Path) -> None:
    """Put the dead letters of pipeline NAME back where they came from, each exactly once."""
    from ottla.pipelines.manager.letters import resend

    read, home = meant(where, name)
    echo(resent(resend(read, home)))


def resent(sent: Sent) -> str:
    """What became of dead letters."""
    return f"{sent.sent} sent again" + (
        f", {sent.left} left, as they were cut to fit or refused by a table" if sent.left else ""
    )


def text(data: bytes | None) -> str | None:
    """Bytes as a person reads them."""
    return None if data is None else data.decode("utf-8", errors="backslashreplace")


COMMANDS: tuple[click.Command, ...] = (status, pause, resume, restart, stop, offsets, dead_letters)
