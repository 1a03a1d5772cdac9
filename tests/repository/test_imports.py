"""Importing Ottla loads no heavy module and starts no thread."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "pyarrow",
    "pandas",
    "numpy",
    "pyspark",
    "py4j",
    "matplotlib",
    "asyncio",
    "starlette",
    "uvicorn",
)

PROBE = """
import importlib, sys, threading
for name in sys.argv[1].split(","):
    importlib.import_module(name)
heavy = sorted({module.partition(".")[0] for module in sys.modules} & set(sys.argv[2].split(",")))
print("heavy:", ",".join(heavy), "threads:", threading.active_count())
"""

ENTRANCES = (
    "ottla",
    "ottla.broker.embedding.embedded_broker",
    "ottla.client.producer",
    "ottla.client.consumer",
    "ottla.client.process",
    "ottla.client.admin",
    "ottla.cli.main",
)


def probe(name: str) -> str:
    command = [sys.executable, "-c", PROBE, name, ",".join(HEAVY)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_importing_it_loads_nothing_heavy_and_starts_no_thread(entrance: str) -> None:
    assert probe(entrance) == "heavy:  threads: 1"


def test_an_admin_that_lists_topics_does_not_load_its_other_operations() -> None:
    script = (
        "import sys, ottla\n"
        "with ottla.Broker() as broker, ottla.Admin(bootstrap_servers=broker.bootstrap_servers) as admin:\n"
        "    admin.list_topics()\n"
        "unwanted = 'ottla.client.consumer.subscription_state', 'ottla.client.admin.acl'\n"
        "print(*sorted(name for name in sys.modules if name.endswith('_calls') and 'admin' in name or name in unwanted))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == ["ottla.client.admin.admin_calls", "ottla.client.admin.topic_calls"]


def test_the_public_names_are_found_and_a_wrong_one_is_an_attribute_error() -> None:
    import ottla

    assert all(getattr(ottla, name) is not None for name in ottla.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Brokre'"):
        _ = ottla.Brokre


def test_reading_and_running_pipeline_files_needs_no_pandas() -> None:
    assert "pandas" not in probe("ottla.pipelines.file.reading,ottla.pipelines.manager.control").split()[1].split(",")


PORTABLE = """
import importlib, pkgutil, select, sys
if hasattr(select, "epoll"):
    del select.epoll
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None  # its import raises ModuleNotFoundError
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        importlib.import_module(module.name)
"""


def test_clients_import_no_module_that_exists_only_on_unix() -> None:
    packages = ("client", "aio", "security", "network", "protocol", "records", "tracing", "mirror", "schemas")
    names = [f"ottla.{name}" for name in packages]
    subprocess.run([sys.executable, "-c", PORTABLE, *names], check=True)
