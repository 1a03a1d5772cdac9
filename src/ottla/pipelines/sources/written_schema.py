"""Columns as a file writes them, read when the file is: a mistake in them need not wait for Spark."""

from __future__ import annotations

import re

from ottla.errors import ConfigError
from ottla.spark.columns.ddl import parse_schema
from ottla.spark.columns.value_formats import INFER

PLACEHOLDER = "${"
FILE = re.compile(r"[^\s{]*(/\S+|\.\w+)")


def checked(text: str) -> str:
    """The text, if it names columns; one with a placeholder is read when it runs, one that is to be inferred names none."""
    if PLACEHOLDER in text or text.strip().lower() == INFER:
        return text
    if FILE.fullmatch(text):
        raise ValueError(
            f"{text!r} looks like a file, and the columns stand here themselves; write such as `id bigint, name string`"
        )
    try:
        parse_schema("schema", text)
    except ConfigError as error:
        raise ValueError(str(error).removeprefix("option schema").lstrip(":= ")) from None
    return text
