"""Command groups that suggest the name for a misspelt command, and import only the command that runs.

A broker must start without the imports of the producer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


KAFKA_TOOLS: Mapping[str, str] = {
    "broker-api-versions": "doctor",
    "client-metrics": "configs alter --client-metrics",
    "console-consumer": "consume",
    "console-producer": "produce",
    "consumer-groups": "groups",
    "consumer-perf-test": "bench consume",
    "delete-records": "records delete",
    "describe": "cluster describe",
    "dump-log": "log dump",
    "e2e-latency": "bench latency",
    "elect": "cluster elect",
    "features": "cluster features",
    "get-offsets": "topics describe",
    "leader-election": "cluster elect",
    "log-dirs": "cluster log-dirs",
    "metadata-quorum": "cluster quorum",
    "mirror-maker": "mirror",
    "producer-perf-test": "bench produce",
    "quorum": "cluster quorum",
    "reassign": "cluster reassign",
    "reassign-partitions": "cluster reassign",
    "server-start": "broker",
    "share-groups": "groups",
    "status": "cluster status",
    "streams-groups": "groups",
}
"""Names of Kafka's tools without `kafka-` and `.sh`, and commands that are searched at the top, with the command here."""
MOST_LISTED = 16
"""A group with more commands does not list them in the error for an unknown one."""


class CommandGroup(click.Group):
    """A group of commands; without arguments it prints its help."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            from ottla.config import unknown  # loads msgspec

            name = args[0].removeprefix("kafka-").removesuffix(".sh")
            meant = name if name in known else KAFKA_TOOLS.get(name) if ctx.parent is None else None
            if meant is not None:
                raise click.UsageError(f"unknown command {args[0]!r}; did you mean '{ctx.command_path} {meant}'?", ctx)
            text = unknown("command", args[0], known)
            is_listed = len(known) <= MOST_LISTED and not text.endswith("?")
            raise click.UsageError(f"{text}; there are {', '.join(known)}" if is_listed else text, ctx)
        return super().resolve_command(ctx, args)


class LazyCommandGroup(CommandGroup):
    """Commands under the headings of `--help`.

    Each has the module that contains it, under its name in Python, and its line in `--help`. `on_load` is called before a
    command's module is imported.
    """

    def __init__(
        self,
        name: str,
        on_load: Callable[[], None],
        sections: Mapping[str, Mapping[str, tuple[str, str]]],
        **settings: Any,
    ) -> None:
        super().__init__(name, **settings)
        self._on_load = on_load
        self._sections = sections
        self._homes = {name: home for commands in sections.values() for name, home in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._homes:
            return None
        self._on_load()
        command: click.Command = getattr(import_module(self._homes[cmd_name][0]), cmd_name.replace("-", "_"))
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        fitting = [(name, line) for name, (_, line) in self._homes.items() if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=line) for name, line in fitting), *options]

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            exec(
                ""
            )  # CPython would end by SIGINT if it arrived within an `exec`, such as `namedtuple`'s; the next exec clears that state
            raise click.Abort from None  # otherwise click prints an empty line
        except BrokenPipeError:
            raise BrokenPipeError from None  # without its number, by which click would end with status 1

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self._homes))
        for heading, commands in self._sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in commands.items()])
