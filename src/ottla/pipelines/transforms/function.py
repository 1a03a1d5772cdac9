"""`function:`: a user's function from DataFrame to DataFrame, written `module:function`."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import field_validator
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ottla.config import unknown
from ottla.errors import ConfigError, OttlaError
from ottla.pipelines.model import Scalar
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.pipelines.python_errors import describe_error
from ottla.pipelines.transforms.transform import Transform

NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


class FunctionTransform(Transform):
    """A Python function that takes a DataFrame and returns one."""

    function: str
    """`module:function`; the module is in the folder of the pipeline file, or installed."""
    arguments: dict[str, Scalar] = {}
    """Its keyword arguments."""

    @field_validator("function")
    @classmethod
    def function_has_a_module(cls, text: str) -> str:
        if not NAME.fullmatch(text):
            raise ValueError(f"{text!r} is not a function; write module:function")
        return text

    def describe(self) -> str:
        return f"function {self.function}"

    def apply(self, frame: DataFrame, context: PipelineContext) -> DataFrame:
        function = self.load(context.folder)
        ship_module(frame.sparkSession, context.folder / f"{self.function.partition(':')[0]}.py")
        try:
            result = function(frame, **self.arguments)
        except (OttlaError, PySparkException):
            raise
        except Exception as error:  # the user's function may raise anything
            raise ConfigError(f"function {self.function} failed: {describe_error(error, inner=1)}") from error
        if not hasattr(result, "sparkSession"):
            raise ConfigError(f"function {self.function} returned {type(result).__name__}; it must return a DataFrame")
        return result  # type: ignore[no-any-return]

    def load(self, folder: Path) -> Callable[..., Any]:
        module, _, name = self.function.partition(":")
        found: Any = import_function(module, folder, self.function)
        for part in name.split("."):
            if not hasattr(found, part):
                raise ConfigError(f"{unknown('function', part, dir(found))} in module {module}")
            found = getattr(found, part)
        if not callable(found):
            raise ConfigError(f"{self.function} is {type(found).__name__}, not a function")
        return found  # type: ignore[no-any-return]


def import_function(module: str, folder: Path, wanted: str) -> Any:
    """Return the module; the folder of the pipeline file is searched first."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ConfigError(f"function {wanted}: there is no module {error.name!r} in {folder}, nor installed") from None
    except Exception as error:
        raise ConfigError(
            f"function {wanted}: module {module} cannot be imported: {describe_error(error, inner=1)}"
        ) from error


def ship_module(spark: SparkSession, file: Path) -> None:
    """Send a module in the folder of the pipeline file to the workers of a cluster; workers on this machine read the folder."""
    if file.is_file() and not str(spark.sparkContext.master).startswith("local"):
        spark.sparkContext.addPyFile(str(file))
