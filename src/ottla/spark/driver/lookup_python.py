"""Which Python Spark asks for the formats there are: this one.

Spark's Java starts what PYSPARK_DRIVER_PYTHON or PYSPARK_PYTHON names when it begins, and else the `python3` of the PATH. In
a virtual environment that nobody has activated that is another Python, in which there is no Ottla.
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
TOLD = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
CHOSEN = "OTTLA_SPARK_PYTHON"
"""Tells processes that are started from here that it was us, and no person, who named the Python."""
IN_A_SPARK = ("PYSPARK_GATEWAY_PORT", "SPARK_ENV_LOADED", "PYTHON_UNIX_DOMAIN_ENABLED")
"""What processes have that Spark has started: their Java is there already."""


def choose_python(environment: MutableMapping[str, str] | None = None) -> None:
    """Have a Spark that is yet to start use this Python, unless it is told another, or finds this one by itself."""
    variables = os.environ if environment is None else environment
    if any(name in variables for name in (*TOLD, *IN_A_SPARK)) or is_first_on_path(variables):
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
    """Have a Spark that is yet to start use `program`, a quicker way to this Python, unless somebody has named another.

    What a process of ours chose and handed on counts as nobody's: its program goes with it, and forks workers that have
    loaded what its paths had.
    """
    if os.environ.get("PYSPARK_PYTHON") in (sys.executable, os.environ.get(CHOSEN)):
        os.environ.pop("PYSPARK_PYTHON", None)
    if "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = os.environ[CHOSEN] = program


def ensure_python(environment: Mapping[str, str] | None = None) -> None:
    """ConfigError where the Python that was named is not here: Spark's driver asks it for sources and sinks, as workers do for rows."""
    variables = os.environ if environment is None else environment
    for name in TOLD:
        program = variables.get(name)
        if program and shutil.which(program, path=variables.get("PATH")) is None:
            raise ConfigError(
                f"{name} = {program}: there is no such program in {Path.cwd()}, where the driver needs it as well; unpack the "
                "environment here, or name a Python that is there"
            )


def is_first_on_path(variables: Mapping[str, str]) -> bool:
    """Whether `python3` is this Python: that of the same directory."""
    found = shutil.which("python3", path=variables.get("PATH"))
    return found is not None and Path(found).absolute().parent == Path(sys.executable).absolute().parent


def is_running() -> bool:
    """Whether this process has started a Java for Spark."""
    context = sys.modules.get("pyspark.core.context")
    return context is not None and context.SparkContext._gateway is not None
