"""The import contracts between the packages hold, and each violation is detected and named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ottla

pytestmark = pytest.mark.xdist_group("arrows")  # what they share is made once

ROOT = Path(__file__).parent.parent.parent
PACKAGE = Path(ottla.__file__).parent

BREACHES = {
    "client/planted_broker.py": "ottla.broker",
    "client/planted_aio.py": "ottla.aio",
    "aio/planted_broker.py": "ottla.broker",
    "broker/planted_client.py": "ottla.client",
    "client/planted_storage.py": "ottla.storage",
    "security/planted_client.py": "ottla.client",
    "records/planted_protocol.py": "ottla.protocol",
    "network/planted_protocol.py": "ottla.protocol",
    "storage/planted_coordination.py": "ottla.coordination",
    "protocol/planted_client.py": "ottla.client",
    "spark/planted_network.py": "ottla.network",
    "spark/planted_broker.py": "ottla.broker",
    "spark/planted_pipelines.py": "ottla.pipelines",
    "spark/ranges/planted_source.py": "ottla.spark.source.range_reader",
    "spark/source/planted_sink.py": "ottla.spark.sink.writers",
    "spark/workers/planted_driver.py": "ottla.spark.driver.session",
    "mirror/planted_broker.py": "ottla.broker",
    "backup/planted_broker.py": "ottla.broker",
    "registry/planted_broker.py": "ottla.broker",
    "registry/kinds/planted_state.py": "ottla.registry.state",
    "pipelines/planted_protocol.py": "ottla.protocol",
    "pipelines/planted_broker.py": "ottla.broker",
    "pipelines/sources/planted_file.py": "ottla.pipelines.file",
    "storage/planted_socket.py": "socket",
    "storage/planted_protocol.py": "ottla.protocol",
    "storage/directory/planted_inspection.py": "ottla.storage.inspection",
    "storage/state_log/planted_log.py": "ottla.storage.log",
    "storage/recovery/planted_log.py": "ottla.storage.log",
    "storage/segments/planted_recovery.py": "ottla.storage.recovery.log_loader",
    "storage/batches/planted_indexes.py": "ottla.storage.indexes.offset_index",
    "storage/producers/planted_batches.py": "ottla.storage.batches.verified_walk",
    "coordination/planted_network.py": "ottla.network",
    "coordination/planted_asyncio.py": "asyncio",
    "coordination/planted_clock.py": "ottla.clock",
    "coordination/planted_time.py": "time",
    "coordination/offsets/planted_groups.py": "ottla.coordination.groups",
    "coordination/cluster/planted_groups.py": "ottla.coordination.groups",
    "coordination/transactions/planted_cluster.py": "ottla.coordination.cluster",
    "coordination/groups/classic/planted_consumer.py": "ottla.coordination.groups.consumer",
    "coordination/groups/consumer/planted_shard.py": "ottla.coordination.groups.shard",
    "broker/replica_manager/planted_node.py": "ottla.broker.node",
    "broker/coordinators/planted_server.py": "ottla.broker.server",
    "broker/state_machines/planted_topics.py": "ottla.broker.metadata.topics",
    "broker/registration/planted_partitions.py": "ottla.broker.replica_manager",
    "broker/settings/planted_network_server.py": "ottla.broker.network_server",
    "broker/apis/planted_controller.py": "ottla.broker.controller",
    "broker/security/planted_metadata.py": "ottla.broker.metadata",
    "protocol/messages/planted_apis.py": "ottla.protocol.apis",
    "protocol/planted_random.py": "random",
    "protocol/planted_selectors.py": "selectors",
    "records/planted_threading.py": "threading",
    "console/planted_broker.py": "ottla.broker",
    "client/planted_starlette.py": "starlette",
    "client/planted_opentelemetry.py": "opentelemetry",
    "client/planted_faststream.py": "faststream",
    "client/planted_taskiq.py": "taskiq",
    "client/planted_polars.py": "polars",
    "console/planted_sdk.py": "mcp",
    "client/planted_widget.py": "anywidget",
    "client/planted_dagster.py": "dagster",
    "client/planted_airflow.py": "airflow",
    "pipelines/planted_lineage.py": "openlineage",
    "notebook/planted_broker.py": "ottla.broker",
    "mcp/planted_broker.py": "ottla.broker",
    "scanning/planted_broker.py": "ottla.broker",
    "client/planted_httpx.py": "httpx",
    "schemas/planted_client.py": "ottla.client",
    "schemas/planted_pyarrow.py": "pyarrow",
    "cli/planted_broker.py": "ottla.broker",
    "cli/planted_network.py": "ottla.network",
    "client/planted_pyarrow.py": "pyarrow",
    "broker/planted_numpy.py": "numpy",
    "records/planted_pandas.py": "pandas",
    "client/planted_pyspark.py": "pyspark",
    "client/producer/transactions/planted_sender.py": "ottla.client.producer.sender",
    "client/producer/transactions/planted_lock.py": "threading",
    "client/share/state/planted_fetcher.py": "ottla.client.share.share_fetcher",
    "client/share/state/planted_clock.py": "ottla.clock",
    "client/work/state/planted_loop.py": "ottla.client.work.loop",
    "client/work/state/planted_clock.py": "ottla.clock",
    "client/consumer/fetching/planted_group.py": "ottla.client.consumer.group.consumer_coordinator",
    "client/consumer/offsets/planted_group.py": "ottla.client.consumer.group",
    "client/consumer/coordinator/planted_offsets.py": "ottla.client.consumer.offsets.commits",
    "client/consumer/group/planted_face.py": "ottla.client.consumer.consumer_face",
    "client/consumer/group/membership/planted_thread.py": "ottla.client.consumer.group.heartbeat_thread",
    "client/consumer/group/membership/planted_clock.py": "ottla.clock",
}


def module_of(file: str) -> str:
    return "ottla." + file.removesuffix(".py").replace("/", ".")


def lint_imports(source: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter with the project's contracts on the package in `source`."""
    config = ("--config", str(ROOT / "pyproject.toml"), "--no-cache")
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as c; c()", *config]
    environment = os.environ | {"PYTHONPATH": str(source), "COLUMNS": "500"}
    return subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return import-linter's output for a copy of the package with one added module per breach."""
    source = tmp_path_factory.mktemp("planted")
    shutil.copytree(PACKAGE, source / "ottla", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    for file, imported in BREACHES.items():
        (source / "ottla" / file).write_text(f"import {imported}\n", encoding="utf-8")
    result = lint_imports(source)
    assert result.returncode == 1, result.stdout + result.stderr
    return result.stdout


def test_the_current_tree_keeps_every_contract() -> None:
    result = lint_imports(PACKAGE.parent)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(("file", "imported"), BREACHES.items())
def test_a_planted_violation_is_reported_with_its_module(planted: str, file: str, imported: str) -> None:
    assert f"{module_of(file)} -> {imported} (l.1)" in planted


def test_every_contract_has_a_planted_violation(planted: str) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in settings["tool"]["importlinter"]["contracts"]:
        assert f"{contract['name']} BROKEN" in planted


def test_every_package_belongs_to_a_layer() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    named = {name.strip(" ()") for layer in layers for name in layer.split("|")}
    parts = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert parts - {"__init__", "__pycache__", "py"} <= named
