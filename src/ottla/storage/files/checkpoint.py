"""Kafka's checkpoint files: a version line, a line with the number of rows, the rows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ottla.model import TopicPartition
from ottla.storage.files.durable import replace_file
from ottla.storage.files.regular_file import read_whole

VERSION = "0"
MOST = 1 << 62
"""Offsets from here on are damage: no log reaches them in a thousand years, and a log there has no space for more records."""
LOG = logging.getLogger(__name__)


def read_rows(path: Path) -> list[list[str]]:
    """Return the rows, each split into words; ValueError if the file is not a complete checkpoint.

    An empty file has none: Kafka leaves such of what it never had anything to write into.
    """
    try:
        lines = read_whole(path).decode().splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text: it has byte 0x{error.object[error.start]:02x} at {error.start}") from None
    if not lines:
        return []
    if len(lines) < 2 or lines[0] != VERSION:
        raise ValueError(f"{path} does not begin with version {VERSION}")
    rows = [line.split() for line in lines[2:]]
    if str(len(rows)) != lines[1].strip():
        raise ValueError(f"{path} announces {lines[1]} rows and has {len(rows)}")
    return rows


def read_numbers(path: Path, count: int) -> list[list[int]]:
    """Return the rows of a checkpoint with `count` integers in each; ValueError for other rows."""
    return [parse_numbers(path, row, count) for row in read_rows(path)]


def parse_numbers(path: Path, words: Sequence[str], count: int) -> list[int]:
    """Parse the words of a row, or of its end, as numbers."""
    try:
        numbers = [int(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != count:
        raise ValueError(f"{path} has {' '.join(words)!r} where {count} whole numbers belong")
    return numbers


def write_rows(path: Path, rows: Iterable[Iterable[object]], *, sync: bool = True) -> None:
    """Replace the file at once."""
    replace_file(path, format_rows(rows), sync=sync)


def format_rows(rows: Iterable[Iterable[object]]) -> str:
    """Return the text of a file with these rows."""
    lines = [" ".join(map(str, row)) for row in rows]
    return "\n".join([VERSION, str(len(lines)), *lines, ""])


def read_offsets(path: Path) -> dict[TopicPartition, int]:
    """Return the offset of each partition; none if the file is missing or damaged, which only makes a scan longer."""
    try:
        rows = [(row, parse_numbers(path, row[1:], 2)) for row in read_rows(path)]
        return {TopicPartition(row[0], number): parse_offset(path, offset) for row, (number, offset) in rows}
    except FileNotFoundError:
        return {}
    except ValueError as error:
        LOG.warning("%s is damaged and passed over: %s", path, error)
        return {}


def parse_offset(path: Path, number: int) -> int:
    """Return a number that can be an offset; ValueError if it cannot."""
    if not 0 <= number < MOST:
        raise ValueError(f"{path} has {number} where an offset belongs")
    return number


def write_offsets(path: Path, offsets: Mapping[TopicPartition, int], *, sync: bool = True) -> None:
    """Replace the file at once."""
    write_rows(path, ((topic, number, offset) for (topic, number), offset in sorted(offsets.items())), sync=sync)
