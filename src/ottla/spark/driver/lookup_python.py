"""Makes Spark look up data sources in this Python.

Spark's Java uses PYSPARK_DRIVER_PYTHON or PYSPARK_PYTHON as set when it starts, and otherwise the `python3` of the
PATH. In a virtual environment that is not activated, that is another Python, without Ottla.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from ottla.errors import ConfigError

log = logging.getLogger(__name__)
CONFIGURED = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
CHOSEN = "OTTLA_SPARK_PYTHON"
"""Marks for child processes that Ottla, and not a user, chose the Python."""
IN_A_SPARK = ("PYSPARK_GATEWAY_PORT", "SPARK_ENV_LOADED", "PYTHON_UNIX_DOMAIN_ENABLED")
"""Variables of processes that Spark has started: their Java runs already."""


def choose_python(environment: MutableMapping[str, str] | None = None) -> None:
    """Make a Spark that is started later use this Python, unless another is configured, or it finds this one by itself."""
    variables = os.environ if environment is None else environment
    if any(name in variables for name in (*CONFIGURED, *IN_A_SPARK)) or is_first_on_path(variables):
        return
    if is_running():
        log.warning(
            "Spark was started before ottla.spark was imported, and looks for formats in the python3 of the PATH, %s, which "
            "is not this program's, %s: if it does not find them, import ottla.spark first, activate the virtual environment, "
            "or set PYSPARK_PYTHON",
            shutil.which("python3", path=variables.get("PATH")),
            sys.executable,
        )
        return
    variables["PYSPARK_PYTHON"] = sys.executable


def use_python(program: str) -> None:
    """Make a Spark that is started later use `program`, a faster way to start this Python, unless a user has configured another.

    A choice that Ottla made in a parent process is replaced: its program would fork workers with the modules of the
    parent's paths.
    """
    if os.environ.get("PYSPARK_PYTHON") in (sys.executable, os.environ.get(CHOSEN)):
        os.environ.pop("PYSPARK_PYTHON", None)
    if "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = os.environ[CHOSEN] = program


def ensure_python(environment: Mapping[str, str] | None = None) -> None:
    """Raise ConfigError if the configured Python does not exist here: Spark's driver uses it for sources and sinks, as workers do for rows."""
    variables = os.environ if environment is None else environment
    for name in CONFIGURED:
        program = variables.get(name)
        if program and shutil.which(program, path=variables.get("PATH")) is None:
            raise ConfigError(
                f"{name} = {program}: there is no such program in {Path.cwd()}, and the driver needs it too; unpack the "
                "environment here, or set a Python that exists"
            )


def is_first_on_path(variables: Mapping[str, str]) -> bool:
    """Return True if `python3` is this Python, in the same directory."""
    found = shutil.which("python3", path=variables.get("PATH"))
    return found is not None and Path(found).absolute().parent == Path(sys.executable).absolute().parent


def is_running() -> bool:
    """Return True if this process has started a Java for Spark."""
    context = sys.modules.get("pyspark.core.context")
    return context is not None and context.SparkContext._gateway is not None
