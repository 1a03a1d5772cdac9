"""The sentence about a directory that the system does not let us use."""

from __future__ import annotations

from pathlib import Path

from ottla.errors import ConfigError


class UnusableError(ConfigError):
    """The system does not let us use a directory."""

    def __init__(self, path: Path, error: OSError) -> None:
        self.reason = "it is a file" if isinstance(error, FileExistsError) else str(error.strerror)
        super().__init__(f"data directory {path} cannot be used: {self.reason}; choose another or mend its permissions")
