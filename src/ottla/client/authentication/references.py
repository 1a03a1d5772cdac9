"""Values that are kept elsewhere, in the syntax of Kafka's ConfigProvider: `${env:NAME}`, `${file:/path:key}` and
`${directory:/path:file}`.

Looked up where a client is made, by whoever made it: what Spark plans, logs and keeps has the reference alone. Only in the
settings of the client's own user, which nobody else can reach.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ottla.errors import ConfigError
from ottla.properties import read_properties

REFERENCE = re.compile(r"\$\{(env|file|directory):([^{}]*)\}")
MOST_BYTES = 1024 * 1024


def resolved(name: str, text: str) -> str:
    """The text with what its references stand for; ConfigError where one leads nowhere."""
    return REFERENCE.sub(lambda match: looked_up(name, match[1], match[2]), text) if "${" in text else text


def looked_up(name: str, provider: str, what: str) -> str:
    """What one reference stands for."""
    if provider == "env":
        value = os.environ.get(what.lstrip(":"))
        if value is None:
            raise ConfigError(f"{name}: there is no environment variable {what.lstrip(':')} here; set it")
        return value
    place, colon, key = what.rpartition(":")
    if not colon or not place or not key:
        raise ConfigError(
            f"{name}: ${{{provider}:{what}}} must be ${{{provider}:/path:{'key' if provider == 'file' else 'file'}}}"
        )
    return of_file(name, place, key) if provider == "file" else of_directory(name, place, key)


def of_file(name: str, place: str, key: str) -> str:
    """A line `key=value` of a properties file."""
    for _, found, value in read_properties(read(name, Path(place))):
        if found == key:
            return value
    raise ConfigError(f"{name}: there is no {key} in {place}; add it")


def of_directory(name: str, place: str, key: str) -> str:
    """The whole of a file in a folder, as secrets are mounted."""
    if "/" in key or key in ("", ".", ".."):
        raise ConfigError(f"{name}: {key!r} must be the name of a file in {place}")
    return read(name, Path(place, key)).rstrip("\n")


def read(name: str, path: Path) -> str:
    """A file as text."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ConfigError(f"{name}: {path} is too large for a setting")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ConfigError(f"{name}: {path} cannot be read: {told}") from None
