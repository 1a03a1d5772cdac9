"""Loads the plugins of every test tree (`tests`, `interop`) and what all of them share."""

from __future__ import annotations

from hypothesis import settings

pytest_plugins = ["pytester", "tests.behaviours"]

# A test that fails when the machine is busy says nothing about the code.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
