"""Passwords for a command: typed unseen, from a pipe or from the environment, where no list of processes shows them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import click

from ottla.cli.options import senseless

F = TypeVar("F", bound=Callable[..., Any])
WAYS = "--password-stdin or --password-env NAME"


class PasswordSource(NamedTuple):
    """Where a password comes from; of these one at most, and without any somebody is asked."""

    from_stdin: bool
    variable: str | None
    plain: str | None

    def read(self, user: str) -> str:
        if sum((self.from_stdin, self.variable is not None, self.plain is not None)) > 1:
            raise senseless("--password-stdin, --password-env and --insecure-password exclude each other")
        if self.plain is not None:
            return checked(self.plain, "--insecure-password")
        if self.variable is not None:
            return of_environment(self.variable)
        if self.from_stdin:
            return checked(sys.stdin.readline().removesuffix("\n").removesuffix("\r"), "standard input")
        return asked(user)


def password_options(command: F) -> F:
    """All of them; the command takes them as `from_stdin`, `variable`, `plain`."""
    for option in (
        click.option(
            "--insecure-password",
            "plain",
            metavar="PASSWORD",
            help="The password itself: whoever may list processes sees it.",
        ),
        click.option("--password-env", "variable", metavar="NAME", help="The password is in this variable."),
        click.option("--password-stdin", "from_stdin", is_flag=True, help="It is the first line of standard input."),
    ):
        command = option(command)
    return command


def of_environment(variable: str) -> str:
    value = os.environ.get(variable)
    if value is None:
        raise senseless(f"--password-env {variable}: there is no such variable in the environment; export it")
    return checked(value, f"--password-env {variable}")


def asked(user: str) -> str:
    if not sys.stdin.isatty():
        raise click.ClickException(f"nobody can be asked for the password of {user!r} here: give {WAYS}")
    value: str = click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True)
    return value


def checked(value: str, source: str) -> str:
    """Not empty: who has no password cannot log in."""
    if not value:
        raise senseless(f"{source}: the password is empty")
    return value
