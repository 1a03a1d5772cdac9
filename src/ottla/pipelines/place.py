"""Places in a pipeline file, and the mistakes there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from ottla.errors import ConfigError, OttlaError


class Place(NamedTuple):
    """A place in a text; lines and columns count from 1, as in editors. A value that is in no file has line 0."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class Mistake(NamedTuple):
    """The description of a mistake in one sentence, and its place."""

    place: Place
    sentence: str

    def __str__(self) -> str:
        return f"{self.place}: {self.sentence}"


class PipelineFileError(ConfigError):
    """A pipeline file has mistakes. All of them are reported, in the order of the file."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = sorted(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


class KeyMistake(ConfigError):
    """The mistake in the value of one key of a source, a transform or a sink."""

    def __init__(self, key: str, sentence: str) -> None:
        super().__init__(sentence)
        self.key = key


@contextmanager
def of_key(key: str) -> Iterator[None]:
    """Raise an OttlaError of the block as a KeyMistake of this key, unless it is one already."""
    try:
        yield
    except KeyMistake:
        raise
    except OttlaError as error:
        raise KeyMistake(key, str(error)) from error
