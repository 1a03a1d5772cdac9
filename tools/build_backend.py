"""The build backend of `pyproject.toml`: setuptools, with Cython where the C code must be generated (docs/decisions/0156)."""

from __future__ import annotations

import runpy
from typing import TypeAlias

from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

CYTHON = "cython>=3.3,<4"
Settings: TypeAlias = dict[str, str | list[str] | None] | None


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    return [CYTHON]


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """Return nothing for a source distribution with the C code of its sources: installing Cython takes seconds, too."""
    return [] if runpy.run_path("setup.py")["has_generated_code"]() else [CYTHON]


get_requires_for_build_editable = get_requires_for_build_wheel
