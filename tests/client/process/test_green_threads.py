"""Under gevent, as in its workers of gunicorn, Celery and Locust."""

from __future__ import annotations

import select
import subprocess
import sys

import pytest

from ottla.network.poller import SelectorsPoller, default_poller
from tests.patience import PATIENCE


def test_a_group_reads_a_transaction_while_other_green_threads_run() -> None:
    command = [sys.executable, "-m", "tests.client.process.green_threads"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (ended.returncode, ended.stdout) == (0, "1000 1000 True\n"), ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_epoll_another_selector_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(select, "epoll", raising=False)
    assert isinstance(default_poller(), SelectorsPoller)
