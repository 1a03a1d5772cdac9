"""Reads the pipeline file with the place of each value, checks it, and describes it as JSON Schema.

All code that reads or runs pipelines imports this package first, so the packages of the extra are checked here.
"""

from importlib.util import find_spec

from ottla.extras import extra

NEEDED = ("pydantic", "pydantic_core", "pyspark", "pyarrow", "urllib3", "ruamel", "starlette", "uvicorn")
"""The packages that are loaded with the first model of a source or a sink."""

with extra("pipelines"):
    for package in NEEDED:
        if find_spec(package) is None:
            raise ModuleNotFoundError(name=package)
