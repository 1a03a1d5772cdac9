"""`ottla console`."""

from __future__ import annotations

import signal
import urllib.error
import urllib.request

import pytest

from tests.cli.conftest import PATIENCE, ottla, start


def test_it_says_where_it_is_and_ends_with_ctrl_c(address: str) -> None:
    process = start("console", "--bootstrap-server", address, "--listen", "127.0.0.1:0")
    try:
        assert process.stdout is not None
        word, _, url = process.stdout.readline().strip().partition(" ")
        assert word == "ready"
        with urllib.request.urlopen(f"{url}/api/overview", timeout=PATIENCE) as answer:
            assert b'"brokers":[{' in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE) == ("", "")
        assert process.returncode == 130
    finally:
        process.kill()
        process.wait()


def test_without_a_broker_the_page_says_so(address: str) -> None:
    process = start("console", "--bootstrap-server", "127.0.0.1:1", "--listen", "127.0.0.1:0")
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[1]
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/api/overview", timeout=PATIENCE)
        with refused.value as answer:
            assert b"127.0.0.1:1" in answer.read()
    finally:
        process.kill()
        process.communicate()


def test_a_place_that_cannot_be_is_one_sentence() -> None:
    refused = ottla("console", "--listen", "nowhere")
    assert refused.status == 2
    assert "--listen 'nowhere' must be HOST:PORT" in refused.sentence
