"""Columns as a file writes them, read when the file is: a mistake in them need not wait for Spark."""

from __future__ import annotations

from ottla.errors import ConfigError
from ottla.spark.columns.ddl import parse_schema
from ottla.spark.columns.value_formats import INFER

PLACEHOLDER = "${"


def checked(text: str) -> str:
    """The text, if it names columns; one with a placeholder is read when it runs, one that is to be inferred names none."""
    if PLACEHOLDER in text or text.strip().lower() == INFER:
        return text
    try:
        parse_schema("schema", text)
    except ConfigError as error:
        raise ValueError(str(error).removeprefix("option schema").lstrip(":= ")) from None
    return text
