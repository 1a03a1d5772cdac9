"""The error for an address that a server cannot bind."""

from __future__ import annotations

import errno

import pytest

from ottla.cannot_listen import cannot_listen

BOUND = "cannot listen on localhost:80: "


@pytest.mark.parametrize(
    ("number", "option", "reason"),
    [
        (errno.EADDRINUSE, None, "the port is taken by another process: choose another, or 0 for a free one"),
        (errno.EADDRINUSE, "--x", "the port is taken by another process: choose another with --x, or 0 for a free one"),
        (errno.EADDRNOTAVAIL, "--x", "this machine has no such address"),
        (errno.EACCES, "--x", "ports below 1024 need privileges: choose a higher one with --x"),
    ],
)
def test_a_known_error_has_its_remedy(number: int, option: str | None, reason: str) -> None:
    assert cannot_listen(OSError(number, "said by Python"), "localhost", 80, option) == BOUND + reason


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EIO, "said by Python"), "said by Python"),
        (OSError(errno.EIO, ""), "Input/output error"),
        (OSError("no number"), "no number"),
    ],
)
def test_an_unknown_error_is_reported_unchanged(error: OSError, reason: str) -> None:
    assert cannot_listen(error, "localhost", 80) == BOUND + reason
