"""The sensor for Airflow, with Airflow's database, tasks and triggerer, in an environment of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from interop.orchestrators import COUNT, airflow_python, broker_with_orders
from ottla import Producer

ROOT = Path(__file__).parents[1]
SECONDS = 120


@pytest.fixture
def servers() -> Iterator[str]:
    """A broker with ten records in two partitions."""
    with broker_with_orders() as servers:
        yield servers


@pytest.fixture
def airflow(servers: str, tmp_path: Path) -> dict[str, str]:
    """The environment of an Airflow with an empty database and the DAG."""
    dags = tmp_path / "dags"
    dags.mkdir()
    shutil.copy(ROOT / "interop" / "airflow_dag.py", dags)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "AIRFLOW_HOME": str(tmp_path),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
        "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "2",
        "ORDERS_SERVERS": servers,
    }
    command = [str(airflow_python()), "-m", "airflow", "db", "migrate"]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=SECONDS)
    return environment


def run_sensor(airflow: dict[str, str], count: int, kill: str = "") -> tuple[int, str]:
    """Run the sensor until it has returned COUNT records, or until the process kills itself. Return status and output."""
    command = [str(airflow_python()), "-m", "interop.airflow_program", str(count)]
    with tempfile.TemporaryFile("w+") as output:  # no pipe: a triggerer's child may outlive the process
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**airflow, "KILL": kill},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(SECONDS)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(SECONDS)
        output.seek(0)
        return status, output.read()


def test_each_record_is_in_one_run_although_airflow_is_killed_again_and_again(
    airflow: dict[str, str], servers: str
) -> None:
    for kill in ("fired", "resumed", "cursor", "cursor", "fired"):
        status, output = run_sensor(airflow, COUNT, kill)
        assert status == -signal.SIGKILL, output[-5000:]
    status, output = run_sensor(airflow, COUNT)
    assert status == 0, output[-5000:]
    assert output.split()[-COUNT:] == [f"{n}@{n % 2}" for n in range(COUNT)]

    with Producer(bootstrap_servers=servers) as producer:
        producer.send("orders", b"later", partition=1).result(10)
    status, output = run_sensor(airflow, COUNT + 1)
    assert output.split()[-COUNT - 1 :] == [*(f"{n}@{n % 2}" for n in range(COUNT)), "later@1"], output[-5000:]
