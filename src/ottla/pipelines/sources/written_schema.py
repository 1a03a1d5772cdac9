"""Checks columns when the pipeline file is read, before Spark starts."""

from __future__ import annotations

import re

from ottla.errors import ConfigError
from ottla.spark.columns.ddl import parse_schema
from ottla.spark.columns.value_formats import INFER

PLACEHOLDER = "${"
FILE = re.compile(r"[^\s{]*(/\S+|\.\w+)")


def checked(text: str) -> str:
    """Return the text; ValueError if it does not define columns.

    Texts with a placeholder, and schemas to infer, are checked later.
    """
    if PLACEHOLDER in text or text.strip().lower() == INFER:
        return text
    if FILE.fullmatch(text):
        raise ValueError(
            f"{text!r} looks like a file name; write the columns here, for example `id bigint, name string`"
        )
    try:
        parse_schema("schema", text)
    except ConfigError as error:
        raise ValueError(str(error).removeprefix("option schema").lstrip(":= ")) from None
    return text
