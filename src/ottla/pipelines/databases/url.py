"""Addresses of databases: `sqlite:///file.db`, `postgresql://user:password@host:5432/name`, `mysql://user:password@host:3306/name`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from ottla.config import unknown
from ottla.errors import ConfigError
from ottla.pipelines.address import check_port, check_user
from ottla.pipelines.databases.database import Database

SCHEMES = ("sqlite", "postgresql", "mysql")
ALIASES = {"postgres": "postgresql", "mariadb": "mysql"}
EXAMPLES = "sqlite:///orders.db, postgresql://user@host/name or mysql://user@host/name"


def scheme_of(url: str) -> str:
    """Return the kind of database of an address; ConfigError for an unknown one."""
    scheme, there, _ = url.partition("://")
    if url.startswith("jdbc:"):
        raise ConfigError(
            f"url starts with jdbc:, the prefix of Java's drivers; write it without, for example {EXAMPLES}"
        )
    if not there:
        raise ConfigError(f"url is not the address of a database; write for example {EXAMPLES}")
    scheme = ALIASES.get(scheme, scheme)
    if scheme not in SCHEMES:
        raise ConfigError(f"{unknown('kind of database', scheme, SCHEMES)}; write for example {EXAMPLES}")
    return scheme


def known_address(text: str) -> str:
    """Return the address; ValueError if it is not valid. A placeholder is valid."""
    if not text.startswith("${"):
        try:
            scheme = scheme_of(text)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        if scheme != "sqlite":
            check_port(text)
    return text


DatabaseUrl = Annotated[str, AfterValidator(known_address)]
"""The type of a field for the address of a database."""


def database_of(url: str, folder: Path) -> Database:
    """Return the database at an address; the path of a file is relative to `folder`."""
    scheme = scheme_of(url)
    if scheme == "sqlite":
        from ottla.pipelines.databases.sqlite import Sqlite

        path = url.partition("://")[2].removeprefix("/")
        if not path or path.startswith(":"):
            raise ConfigError("url = 'sqlite://': a database in memory is lost when its process ends; use a file")
        return Sqlite((folder / path).absolute(), url)
    try:
        check_user(url)
    except ValueError as error:
        raise ConfigError(f"url: {error}") from None
    if scheme == "mysql":
        from ottla.pipelines.databases.mysql import Mysql

        return Mysql(url)
    from ottla.pipelines.databases.postgresql import Postgresql

    return Postgresql(url)
