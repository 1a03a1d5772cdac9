"""The pipeline file: read with places, checked whole, and described as JSON Schema.

All that reads or runs pipelines comes by here first, so here it is looked whether the packages of the extra are there.
"""

from importlib.util import find_spec

from ottla.extras import extra

NEEDED = ("pydantic", "pydantic_core", "pyspark", "pyarrow", "urllib3", "ruamel", "starlette", "uvicorn")
"""What is loaded with the first model of a source or a sink, in whatever order."""

with extra("pipelines"):
    for package in NEEDED:
        if find_spec(package) is None:
            raise ModuleNotFoundError(name=package)
