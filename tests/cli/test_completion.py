"""`ottla completion` and the completions that a shell gets."""

from __future__ import annotations

import os
import subprocess

import pytest

from ottla.cli.main import main
from tests.cli.conftest import OTTLA, PATIENCE


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_each_shell_calls_ottla(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    out, err = capsys.readouterr()
    assert f"_OTTLA_COMPLETE={shell}_complete" in out
    assert err == ""


@pytest.mark.parametrize(
    ("words", "at", "offered"),
    [
        ("ottla to", 1, "plain,topics"),
        ("ottla cluster re", 2, "plain,reassign"),
        ("ottla consume --from-t", 2, "plain,--from-time"),
    ],
)
def test_words_are_completed(words: str, at: int, offered: str) -> None:
    asked = {**os.environ, "_OTTLA_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    # The shell calls it by its name; the module's own would be another variable.
    run = [OTTLA[0], "-c", "from ottla.cli.main import main; main()"]
    found = subprocess.run(run, env=asked, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert offered in found.stdout.splitlines(), found
