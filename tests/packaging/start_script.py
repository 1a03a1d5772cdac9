"""The start script of the image, as a module, with the folders of an image in a temporary directory."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from ottla.properties import read_properties

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "packaging" / "image"


def load_start_script() -> ModuleType:
    """Import packaging/image/start.py."""
    spec = importlib.util.spec_from_file_location("start", FOLDER / "start.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


START = load_start_script()


def make_image(root: Path, **variables: str) -> Any:
    """Return the image below `root` with variables of a container."""
    return START.Image(root, variables)


def configure(root: Path, **variables: str) -> dict[str, str]:
    """Write the settings file, and return the settings in it."""
    image = make_image(root, **variables)
    assert image.configure() == []
    return read_settings(image)


def read_settings(image: Any) -> dict[str, str]:
    text = image.settings_file.read_text(encoding="utf-8")
    return {key: value for _, key, value in read_properties(text)}
