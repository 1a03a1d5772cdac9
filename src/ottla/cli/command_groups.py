"""Command groups that suggest the name for a misspelt command, and import only the command that runs.

A broker must start without the imports of the producer.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from ottla.config import unknown

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class CommandGroup(click.Group):
    """A group of commands; without arguments it prints its help."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, args or ["--help"])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            raise click.UsageError(unknown("command", args[0], known), ctx)
        return super().resolve_command(ctx, args)


class LazyCommandGroup(CommandGroup):
    """Commands by name: the module that contains each, under its name in Python, and its line in `--help`."""

    def __init__(self, name: str, homes: Mapping[str, tuple[str, str]], **settings: Any) -> None:
        super().__init__(name, **settings)
        self._homes = homes

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._homes:
            return None
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
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._homes.items()])
