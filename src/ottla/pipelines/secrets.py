"""Secrets in a pipeline file: `${env:NAME}` and `${file:PATH}`.

Models keep the text with the placeholder in it, so that nothing that prints a model, a plan or a mistake can print a
secret. What needs the value asks here at the last moment, and what others say of it afterwards comes back through `hidden`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ottla.config import unknown_among
from ottla.errors import ConfigError

PLACEHOLDER = re.compile(r"\$\{(\w+):([^}]*)\}")
KINDS = ("env", "file")


class Secrets:
    """The values behind placeholders; relative paths are relative to `folder`."""

    def __init__(self, environment: Mapping[str, str], folder: Path) -> None:
        self._environment = environment
        self._folder = folder
        self._told: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Secrets({len(self._told)} told)"

    def resolve(self, text: str) -> str:
        """The text with its values; ConfigError, which has none of them, where one is not there."""
        return PLACEHOLDER.sub(lambda found: self._value(found.group(), found.group(1), found.group(2)), text)

    def hidden(self, text: str) -> str:
        """The text with placeholders again where it has values that were told."""
        for value, placeholder in sorted(self._told.items(), key=lambda told: -len(told[0])):
            text = text.replace(value, placeholder)
        return text

    def _value(self, placeholder: str, kind: str, name: str) -> str:
        if kind not in KINDS:
            raise ConfigError(f"{placeholder}: {unknown_among('kind of secret', kind, KINDS, 'env and file')}")
        value = self._from_environment(name) if kind == "env" else self._from_file(placeholder, name)
        if value:
            self._told[value] = placeholder
        return value

    def _from_environment(self, name: str) -> str:
        value = self._environment.get(name)
        if value is None:
            raise ConfigError(f"${{env:{name}}}: there is no variable {name!r} in the environment; set it")
        return value

    def _from_file(self, placeholder: str, name: str) -> str:
        try:
            return (self._folder / name).read_text(encoding="utf-8").removesuffix("\n")
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
            raise ConfigError(f"{placeholder}: the file {name!r} cannot be read: {reason}") from None
