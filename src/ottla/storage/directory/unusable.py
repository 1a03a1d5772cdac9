"""The sentence about a directory that the system does not let us use."""

from __future__ import annotations

from pathlib import Path

from ottla.errors import ConfigError
from ottla.storage.files.kind import kind_of


class UnusableError(ConfigError):
    """The system does not let us use a directory."""

    def __init__(self, path: Path, error: OSError) -> None:
        self.reason, remedy = str(error.strerror), "choose another or mend its permissions"
        if isinstance(error, FileExistsError):
            self.reason = "it is a file"
        elif isinstance(error, IsADirectoryError):
            kind = kind_of(Path(error.filename))
            self.reason = f"{error.filename} is {kind}, where a file belongs"
            remedy = f"move that {kind.removeprefix('a ')} away or choose another directory"
        super().__init__(f"data directory {path} cannot be used: {self.reason}; {remedy}")
