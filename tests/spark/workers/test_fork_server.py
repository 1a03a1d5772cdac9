"""Forked processes with preloaded modules behave like newly started ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import psutil
import pytest

from ottla.spark.workers import fork_client, worker_python
from ottla.spark.workers.fork_server import fork, has_same_hash_seed
from ottla.spark.workers.worker_python import start_fork_server
from tests.patience import eventually

SAYS = """
import json, os, sys
facts = {"name": __name__, "arguments": sys.argv[1:], "folder": os.getcwd(), "wish": os.environ.get("WISH"), "path": sys.path}
print(json.dumps(facts | {"read": sys.stdin.read(), "loaded": "pyarrow" in sys.modules}))
sys.exit(7)
"""
WAITS = """
import os, time
print(os.getpid(), flush=True)
time.sleep(60)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worker_python, "loaded_too", {"mailbox", "nothing_of_this_name"})
        return start_fork_server(tmp_path_factory.mktemp("server"))


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    (tmp_path / "says.py").write_text(SAYS)
    (tmp_path / "waits.py").write_text(WAITS)
    return tmp_path


def begun(server: Path, folder: Path, *arguments: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", fork_client.__file__, str(server), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), **more},
    )


def said(server: Path, folder: Path, *arguments: str, **more: Any) -> dict[str, Any]:
    with begun(server, folder, "-m", "says", *arguments, **more) as process:
        answer: dict[str, Any] = json.loads(process.communicate("in", timeout=30)[0])
        return {**answer, "code": process.returncode}


def test_it_has_its_own_arguments_environment_folder_and_streams_and_need_not_load_anything(
    server: Path, modules: Path
) -> None:
    reported = said(server, modules, "a", "b c", WISH="x")
    path = reported.pop("path")
    assert reported == {
        "name": "__main__",
        "arguments": ["a", "b c"],
        "folder": str(modules),
        "wish": "x",
        "read": "in",
        "loaded": True,
        "code": 7,
    }
    assert path[:2] == [str(modules), str(modules)]
    assert next(one for one in sys.path if "site-packages" in one) in path


def test_additional_modules_are_loaded_and_those_that_cannot_be_imported_are_skipped(
    server: Path, modules: Path
) -> None:
    (modules / "looks.py").write_text("import sys\nprint('mailbox' in sys.modules)")
    with begun(server, modules, "-m", "looks") as process:
        assert process.communicate(timeout=30)[0] == "True\n"


def test_an_absent_or_unsuitable_server_is_started_again(server: Path, modules: Path) -> None:
    for nobody, more in ((modules / "nobody", {}), (server, {"PYTHONHASHSEED": "5"})):
        reported = said(nobody, modules, "a", WISH="x", **more)
        assert (reported["arguments"], reported["wish"], reported["read"], reported["loaded"]) == (
            ["a"],
            "x",
            "in",
            False,
        )
        assert reported["code"] == 7


def test_ending_the_process_started_by_spark_ends_its_server(server: Path, modules: Path) -> None:
    with begun(server, modules, "-m", "waits") as process:
        assert process.stdout is not None
        forked = psutil.Process(int(process.stdout.readline()))
        assert forked.pid != process.pid
        process.terminate()
        eventually(lambda: not forked.is_running())


def test_two_that_are_forked_have_chance_of_their_own(server: Path, modules: Path) -> None:
    (modules / "dice.py").write_text(
        "import random, numpy\nfrom ottla.spark.workers.worker_daemon import reseed\nreseed()\n"
        "print([random.random(), numpy.random.random()])"
    )
    found = []
    for _ in range(2):
        with begun(server, modules, "-m", "dice") as process:
            found.append(json.loads(process.communicate(timeout=30)[0]))
    assert set(found[0]).isdisjoint(found[1])


def test_only_another_order_of_sets_makes_it_unfit() -> None:
    assert has_same_hash_seed({}, {"PYTHONHASHSEED": "0"})
    assert has_same_hash_seed({"PYTHONHASHSEED": "0", "A": "b"}, {"PYTHONHASHSEED": "0"})
    assert not has_same_hash_seed({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "0"})


def test_a_fork_ignores_the_threads_of_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    def fork_since_python_3_12() -> int:
        warnings.warn("This process is multi-threaded, use of fork() may lead to deadlocks", DeprecationWarning, 2)
        return 42

    monkeypatch.setattr(os, "fork", fork_since_python_3_12)
    assert fork() == 42
