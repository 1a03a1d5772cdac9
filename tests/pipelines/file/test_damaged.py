"""A pipeline file that is damaged anyhow is read, or refused with sentences that have places; nothing else."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from ottla.pipelines.file.reading import PipelineDefinition
from ottla.pipelines.place import PipelineFileError
from tests.pipelines.file.files import WHOLE, read

DATA = WHOLE.encode()
LINES = WHOLE.splitlines(keepends=True)
SENTENCE = re.compile(r"p\.yaml:\d+:\d+: \S[^\n]*")
SPECIAL = [
    *"{}[]:,&*!|>'\"%@`#-?\n\t ~",
    "<<: ",
    "\0",
    "\u2028",
    "\ufeff",
    "- ",
    "yes",
    "null",
    "${env:X}",
    "1e999",
    "0o9",
    ".nan",
]


def read_or_error(data: bytes) -> list[PipelineDefinition] | list[str]:
    """Return the content of the file, or its mistakes."""
    try:
        return read(data)
    except PipelineFileError as error:
        message = str(error).split("\n")
        assert message
        assert all(SENTENCE.fullmatch(line) for line in message), message
        return message


@given(st.integers(0, len(DATA) - 1), st.integers(0, 255))
def test_another_byte_at_any_position_gives_a_pipeline_or_an_error(at: int, byte: int) -> None:
    read_or_error(DATA[:at] + bytes([byte]) + DATA[at + 1 :])


@given(st.integers(0, len(WHOLE)), st.sampled_from(SPECIAL), st.integers(0, 12))
def test_inserted_or_removed_text_at_any_position_gives_a_pipeline_or_an_error(at: int, text: str, cut: int) -> None:
    read_or_error((WHOLE[:at] + text + WHOLE[at + cut :]).encode())


@given(st.lists(st.sampled_from(LINES), max_size=30))
def test_lines_in_another_order_give_a_pipeline_or_an_error(lines: list[str]) -> None:
    read_or_error("".join(lines).encode())


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_text_gives_a_pipeline_or_an_error(data: bytes) -> None:
    read_or_error(data)


@given(st.integers(0, len(DATA)))
def test_a_truncated_file_gives_a_pipeline_or_an_error(at: int) -> None:
    read_or_error(DATA[:at])
