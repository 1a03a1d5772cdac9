"""The sensor for Dagster, with Dagster's instance and sensor context, in an environment of its own."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.orchestrators import COUNT, broker_with_orders, dagster_python
from ottla import Producer

ROOT = Path(__file__).parents[1]
SECONDS = 300


def evaluate(servers: str, home: Path, kill_at: int) -> subprocess.CompletedProcess[str]:
    """Evaluate the sensor until there are no new records, or until the process kills itself."""
    command = [str(dagster_python()), "-m", "interop.dagster_program", servers, str(home), str(kill_at)]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "DAGSTER_DISABLE_TELEMETRY": "1"}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )


@pytest.fixture
def servers() -> Iterator[str]:
    """A broker with ten records in two partitions."""
    with broker_with_orders() as servers:
        yield servers


def test_each_record_has_one_run_although_the_sensor_is_killed_again_and_again(servers: str, tmp_path: Path) -> None:
    for kill_at in (1, 3, 6, 9):
        assert evaluate(servers, tmp_path, kill_at).returncode == -signal.SIGKILL
    ended = evaluate(servers, tmp_path, 0)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split() == [f"{n}@{n % 2}" for n in range(COUNT)]

    with Producer(bootstrap_servers=servers) as producer:
        producer.send("orders", b"later", partition=1).result(10)
    again = evaluate(servers, tmp_path, 0)
    assert again.stdout.split() == [*(f"{n}@{n % 2}" for n in range(COUNT)), "later@1"], again.stderr
