"""The error for a missing extra names it, and the command that installs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ottla import OttlaError
from ottla.errors import MissingExtraError
from ottla.extras import extra

# Python takes a module that is None in sys.modules for one that is not there.
WITHOUT_ARROW = """
import sys
sys.modules["pyarrow"] = None
import asyncio
import ottla, ottla.aio
from ottla.errors import MissingExtraError

async def poll(servers):
    async with ottla.aio.Consumer(bootstrap_servers=servers) as consumer:
        consumer.assign([ottla.TopicPartition("t", 0)])
        await consumer.poll_arrow(0.1)

async def send(servers):
    async with ottla.aio.Producer(bootstrap_servers=servers) as producer:
        await producer.send_table("t", object())

with ottla.Broker() as broker:
    servers = broker.bootstrap_servers
    with ottla.Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([ottla.NewTopic("t", 1)])
    consumer = ottla.Consumer(bootstrap_servers=servers, isolation_level="read_committed", group_id="g", enable_auto_commit=False)
    consumer.assign([ottla.TopicPartition("t", 0)])
    producer = ottla.Producer(bootstrap_servers=servers, transactional_id="t")
    calls = {
        "poll_arrow": lambda: consumer.poll_arrow(0.1),
        "read_table": lambda: ottla.read_table("t", bootstrap_servers=servers),
        "send_table": lambda: producer.send_table("t", object()),
        "process": lambda: ottla.process(consumer, producer, lambda table: table, topics=["t"], to="u", arrow=True),
        "aio.poll_arrow": lambda: asyncio.run(poll(servers)),
        "aio.send_table": lambda: asyncio.run(send(servers)),
    }
    for name, call in calls.items():
        try:
            call()
        except MissingExtraError as error:
            print(f"{name}: {error}")
    producer.close()
    consumer.close()
"""
SENTENCE = "this needs pyarrow, which is not installed; pip install 'ottla[arrow]'"


def test_every_function_that_needs_arrow_reports_that_it_is_missing() -> None:
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT_ARROW], capture_output=True, text=True, timeout=60, check=False
    )
    names = ("poll_arrow", "read_table", "send_table", "process", "aio.poll_arrow", "aio.send_table")
    assert result.stdout.splitlines() == [f"{name}: {SENTENCE}" for name in names], result.stderr
    assert result.returncode == 0, result.stderr


WITHOUT_ONE = """
import sys
sys.modules[sys.argv[1]] = None
from ottla.cli.main import main
status = main(["pipeline", *sys.argv[2:]])
try:
    from ottla.pipelines import Pipeline
except ModuleNotFoundError as error:
    print(error)
sys.exit(status)
"""


@pytest.mark.parametrize("package", ["pydantic", "pyspark", "pyarrow", "urllib3", "ruamel"])
def test_pipelines_report_each_missing_package(package: str, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("pipelines: {}\n", encoding="utf-8")
    command = [sys.executable, "-c", WITHOUT_ONE, package, "validate", str(tmp_path / "p.yaml")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    sentence = f"this needs {package}, which is not installed; pip install 'ottla[pipelines]'\n"
    assert (result.returncode, result.stdout, result.stderr) == (1, sentence, f"ottla: {sentence}")


WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))
from ottla.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(("command", "package"), [("mcp", "mcp"), ("mcp", "pydantic"), ("registry", "uvicorn")])
def test_a_command_names_its_own_extra_also_if_other_parts_need_the_package(command: str, package: str) -> None:
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT, package, command],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert result.stderr == f"ottla: this needs {package}, which is not installed; pip install 'ottla[{command}]'\n"


def test_the_tools_for_language_models_need_only_their_own_extra() -> None:
    result = subprocess.run(
        [sys.executable, "-c", WITHOUT, "httpx,fastavro,google.protobuf,jsonschema,pyarrow", "mcp"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")


def test_a_missing_extra_is_an_error_of_ours_and_of_pythons() -> None:
    with pytest.raises(MissingExtraError, match=r"^this needs no_such, .*'ottla\[some\]'$") as caught, extra("some"):
        import no_such.thing  # type: ignore[import-not-found]  # noqa: F401
    assert isinstance(caught.value, OttlaError)
    assert isinstance(caught.value, ModuleNotFoundError)
    assert caught.value.name == "no_such"


def test_an_error_of_another_kind_is_not_changed() -> None:
    with pytest.raises(ImportError, match="cannot import name 'nothing'"), extra("some"):
        from ottla.errors import nothing  # type: ignore[attr-defined]  # noqa: F401
