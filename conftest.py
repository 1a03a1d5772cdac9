"""Loads the plugins of every test tree (`tests`, `interop`)."""

from __future__ import annotations

pytest_plugins = ["pytester", "tests.behaviours"]
