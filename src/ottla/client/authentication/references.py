"""Resolve references in setting values, with the syntax of Kafka's ConfigProvider (KIP-297).

References are `${env:NAME}`, `${file:/path:key}` and `${directory:/path:file}`.

A reference is resolved where the client is created, so Spark plans and logs contain the reference and not the secret.
References are resolved only in settings of the process's own user; settings that arrive over the network are not
resolved.
"""

from __future__ import annotations

import os
import re

from ottla.errors import ConfigError
from ottla.properties import read_properties

REFERENCE = re.compile(r"\$\{(env|file|directory):([^{}]*)\}")
MAX_FILE_BYTES = 1024 * 1024


def resolve_references(name: str, text: str) -> str:
    """Return the text with all references replaced. Raises ConfigError if one cannot be resolved."""
    return REFERENCE.sub(lambda match: resolve_reference(name, match[1], match[2]), text) if "${" in text else text


def resolve_reference(name: str, provider: str, what: str) -> str:
    """Return the value of one reference."""
    if provider == "env":
        value = os.environ.get(what.lstrip(":"))
        if value is None:
            raise ConfigError(f"{name}: the environment variable {what.lstrip(':')} is not set; set it")
        return value
    location, colon, key = what.rpartition(":")
    if not colon or not location or not key:
        raise ConfigError(
            f"{name}: ${{{provider}:{what}}} must be ${{{provider}:/path:{'key' if provider == 'file' else 'file'}}}"
        )
    return read_property(name, location, key) if provider == "file" else read_secret_file(name, location, key)


def read_property(name: str, location: str, key: str) -> str:
    """Return the value of a line `key=value` in a properties file."""
    for _, found, value in read_properties(read_text_file(name, location)):
        if found == key:
            return value
    raise ConfigError(f"{name}: no key {key} in {location}; add it")


def read_secret_file(name: str, location: str, key: str) -> str:
    """Return the content of a file in a directory, the form in which Kubernetes mounts secrets."""
    if "/" in key or key in ("", ".", ".."):
        raise ConfigError(f"{name}: {key!r} must be the name of a file in {location}")
    return read_text_file(name, os.path.join(location, key)).rstrip("\n")


def read_text_file(name: str, path: str) -> str:
    """Read a text file of at most `MAX_FILE_BYTES`."""
    try:
        if os.stat(path).st_size > MAX_FILE_BYTES:
            raise ConfigError(f"{name}: {path} is larger than {MAX_FILE_BYTES} bytes")
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ConfigError(f"{name}: {path} cannot be read: {reason}") from None
