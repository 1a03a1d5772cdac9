"""A fixture that runs `ottla doctor` and returns its findings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ottla.cli.main import main

Run = Callable[..., tuple[int, dict[str, list[dict[str, Any]]]]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the doctor and return its findings by check."""

    def run_it(*words: object) -> tuple[int, dict[str, list[dict[str, Any]]]]:
        status = main(["doctor", *map(str, words), "--json"])
        out, err = capsys.readouterr()
        assert err == ""
        found: dict[str, list[dict[str, Any]]] = {}
        for each in json.loads(out):
            found.setdefault(each["check"], []).append(each)
        return status, found

    return run_it


def levels(found: dict[str, list[dict[str, Any]]], *checks: str) -> list[str]:
    return [each["level"] for check in checks for each in found.get(check, ())]
