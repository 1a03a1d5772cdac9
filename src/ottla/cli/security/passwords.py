"""Passwords for commands: from a prompt without echo, a pipe or the environment, which process lists do not show."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from ottla.cli.options import usage_error

F = TypeVar("F", bound=Callable[..., Any])
WAYS = "--password-stdin or --password-env NAME"


class PasswordSource(NamedTuple):
    """The source of a password: at most one of these; without any, a prompt."""

    from_stdin: bool
    variable: str | None
    plain: str | None

    def read(self, user: str) -> str:
        if sum((self.from_stdin, self.variable is not None, self.plain is not None)) > 1:
            raise usage_error("--password-stdin, --password-env and --insecure-password exclude each other")
        if self.plain is not None:
            return non_empty(self.plain, "--insecure-password")
        if self.variable is not None:
            return password_from_environment(self.variable)
        if self.from_stdin:
            return non_empty(sys.stdin.readline().removesuffix("\n").removesuffix("\r"), "standard input")
        return prompt_password(user)


def password_options(command: F) -> F:
    """Add the options, passed to the command as `from_stdin`, `variable` and `plain`."""
    for option in (
        click.option(
            "--insecure-password",
            "plain",
            metavar="PASSWORD",
            help="The password itself; it is visible in the process list.",
        ),
        click.option("--password-env", "variable", metavar="NAME", help="The environment variable with the password."),
        click.option(
            "--password-stdin",
            "from_stdin",
            is_flag=True,
            help="Read the password from the first line of standard input.",
        ),
    ):
        command = option(command)
    return command


def password_from_environment(variable: str) -> str:
    value = os.environ.get(variable)
    if value is None:
        raise usage_error(f"--password-env {variable}: the variable is not set: export it")
    return non_empty(value, f"--password-env {variable}")


def prompt_password(user: str) -> str:
    if not sys.stdin.isatty():
        raise click.ClickException(f"no terminal to enter the password of {user!r}: use {WAYS}")
    value: str = click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True)
    return value


def non_empty(value: str, source: str) -> str:
    """Return the password; raise a usage error if it is empty."""
    if not value:
        raise usage_error(f"{source}: the password is empty")
    return value
