"""The ids of tests with large parameters."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("value", [b"\0" * 10_000_000, "text" * 1000])
def test_a_large_parameter_does_not_make_a_large_name(request: pytest.FixtureRequest, value: object) -> None:
    assert len(request.node.name) < 200
