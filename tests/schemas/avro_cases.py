"""Random Avro schemas and values of them."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
from hypothesis import strategies as st

SCALARS: Any = {
    "null": st.none(),
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "bytes": st.binary(max_size=300),
    "string": st.text(max_size=100),
}


@st.composite
def schemas(draw: Any, depth: int = 3) -> tuple[Any, Any]:
    """A schema without names yet, and a strategy for its values."""
    kind = draw(st.sampled_from([*SCALARS, *(("array", "map", "record", "union", "enum", "fixed") if depth else ())]))
    if kind in SCALARS:
        return kind, SCALARS[kind]
    if kind == "enum":
        return {"type": "enum", "name": "", "symbols": ["A", "B", "C"]}, st.sampled_from("ABC")
    if kind == "fixed":
        return {"type": "fixed", "name": "", "size": 4}, st.binary(min_size=4, max_size=4)
    if kind == "record":
        parts = draw(st.lists(schemas(depth - 1), max_size=4))
        fields = [{"name": f"f{number}", "type": part} for number, (part, _) in enumerate(parts)]
        values = st.fixed_dictionaries({f"f{number}": values for number, (_, values) in enumerate(parts)})
        return {"type": "record", "name": "", "fields": fields}, values
    inner, values = draw(schemas(depth - 1))
    if kind == "array":
        return {"type": "array", "items": inner}, st.lists(values, max_size=4)
    if kind == "map":
        return {"type": "map", "values": inner}, st.dictionaries(st.text(max_size=5), values, max_size=4)
    if inner == "null" or isinstance(inner, list):
        return inner, values
    branches = draw(st.sampled_from([["null", inner], [inner, "null"]]))
    return branches, st.none() | values


def with_names(schema: Any, numbers: Any = None) -> Any:
    """Return the schema with a different name for each named type."""
    numbers = iter(range(1000)) if numbers is None else numbers
    if isinstance(schema, list):
        return [with_names(branch, numbers) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    made = dict(schema)
    if "name" in made:
        made["name"] = f"N{next(numbers)}"
    for part in ("items", "values"):
        if part in made:
            made[part] = with_names(made[part], numbers)
    if "fields" in made:
        made["fields"] = [{**field, "type": with_names(field["type"], numbers)} for field in made["fields"]]
    return made


@st.composite
def cases(draw: Any) -> tuple[str, Any]:
    schema, values = draw(schemas())
    return json.dumps(with_names(schema)), draw(values)


def by_fastavro(text: str, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(text)), value)
    return stream.getvalue()
