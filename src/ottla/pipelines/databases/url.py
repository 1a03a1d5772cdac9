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
    """Which database it is; ConfigError where it is none that is known."""
    scheme, there, _ = url.partition("://")
    if url.startswith("jdbc:"):
        raise ConfigError(f"url begins with jdbc:, which is Java's; write it without, such as {EXAMPLES}")
    if not there:
        raise ConfigError(f"url is no address of a database; write such as {EXAMPLES}")
    scheme = ALIASES.get(scheme, scheme)
    if scheme not in SCHEMES:
        raise ConfigError(f"{unknown('kind of database', scheme, SCHEMES)}; write such as {EXAMPLES}")
    return scheme


def known_address(text: str) -> str:
    """ValueError for what is no address of a database; a placeholder may be one."""
    if not text.startswith("${"):
        try:
            scheme = scheme_of(text)
        except ConfigError as error:
            raise ValueError(str(error)) from None
        if scheme != "sqlite":
            check_port(text)
    return text


DatabaseUrl = Annotated[str, AfterValidator(known_address)]
"""A field of a pipeline's source or sink."""


def database_of(url: str, folder: Path) -> Database:
    """The database at an address; a relative file lies in the folder."""
    scheme = scheme_of(url)
    if scheme == "sqlite":
        from ottla.pipelines.databases.sqlite import Sqlite

        path = url.partition("://")[2].removeprefix("/")
        if not path or path.startswith(":"):
            raise ConfigError("url = 'sqlite://': a database in memory is gone when its process ends; name a file")
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
