"""`function:`: a function of one's own, from DataFrame to DataFrame, named `module:function`."""

from __future__ import annotations

import re

from pydantic import field_validator

from ottla.pipelines.model import Scalar
from ottla.pipelines.transforms.transform import Transform

NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


class FunctionTransform(Transform):
    """A Python function that takes a DataFrame and returns one."""

    function: str
    """`module:function`; the module lies beside the pipeline file, or is installed."""
    arguments: dict[str, Scalar] = {}
    """Keyword arguments that it gets besides."""

    @field_validator("function")
    @classmethod
    def function_has_a_module(cls, text: str) -> str:
        if not NAME.fullmatch(text):
            raise ValueError(f"{text!r} names no function; write module:function")
        return text

    def describe(self) -> str:
        return f"function {self.function}"
