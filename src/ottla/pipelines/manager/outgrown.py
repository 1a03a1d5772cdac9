"""State that does not fit a query any more, which Spark finds out with the first batch: by the types of what it keeps.

`fingerprint` tells what the plan shows before anything runs.
"""

from __future__ import annotations

import re

from ottla.pipelines.manager.reasons import texts_of
from ottla.pipelines.python_errors import shortened

CONDITION = re.compile(r"\[(STATE_STORE_\w*SCHEMA\w*|STREAMING_STATEFUL_OPERATOR_NOT_MATCH\w*)\]")
SCHEMAS = re.compile(r"Existing (key|value)_schema=(.*?) and new \1_schema=(.*?)\.(?:\s|$)", re.DOTALL)
FIELD = re.compile(r"StructField\(([^,()]+),(\w+?)Type(\(\d+,\d+\))?,(?:true|false)\)")


def outgrown(error: BaseException) -> str | None:
    """What was kept and what would be, where an error of Spark's is about that; else None."""
    for text in texts_of(error):
        if CONDITION.search(text):
            found = SCHEMAS.search(text)
            if found is None:
                return "its state was kept by other steps"
            return f"its state was kept with the {found[1]} ({fields(found[2])}) and would be with ({fields(found[3])})"
    return None


def fields(schema: str) -> str:
    """Of Spark's text of a schema: `sum double, count long`."""
    found = FIELD.findall(schema)
    return shortened(", ".join(f"{name} {kind.lower()}{size}" for name, kind, size in found) or schema)
