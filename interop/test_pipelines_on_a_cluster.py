"""The same pipeline file on a Spark standalone cluster of two workers: Ottla installed there, shipped as an archive, in a packed environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from site import getsitepackages
from typing import Any

import pytest

from interop.conftest import NewTopicName
from interop.spark_cluster import Cluster, shipped, spark_cluster
from interop.test_spark_cluster import committed
from ottla import Producer

pytestmark = [pytest.mark.behaviour("D4"), pytest.mark.usefixtures("quick_drivers")]
ROWS = 2_000
MODULE = """
from pyspark.sql import functions as F

def place(_):
    import sys
    import ottla.spark.sink
    return f"{sys.prefix} {ottla.spark.sink.__file__}"

def with_place(frame):
    return frame.withColumn("place", F.udf(place, "string")(F.lit(1)))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.mark.parametrize("way", ["installed", "archive", "packed"])
def test_a_pipeline_file_runs_on_a_cluster_with_its_own_functions(
    cluster: Cluster, ottla_broker: str, fresh_topic: NewTopicName, tmp_path: Path, way: str
) -> None:
    source, target = fresh_topic(ottla_broker), fresh_topic(ottla_broker)
    with Producer(bootstrap_servers=ottla_broker) as producer:
        for n in range(ROWS):
            producer.send(source, json.dumps({"n": n}).encode())
    (tmp_path / "own_place.py").write_text(MODULE, encoding="utf-8")
    settings: dict[str, Any] = {"bootstrap.servers": ottla_broker}
    if way == "archive":
        settings["spark"] = {"spark.submit.pyFiles": str(shipped(tmp_path))}
    if way == "packed":
        settings["spark"] = {"spark.archives": f"{packed(tmp_path)}#environment"}
    pipeline = {
        "source": {"type": "topic", "topic": source, "valueFormat": "json", "valueSchema": "n bigint"},
        "transforms": [{"function": "own_place:with_place"}],
        "sink": {"type": "topic", "topic": target},
    }
    file = tmp_path / "p.yaml"
    file.write_text(json.dumps({"settings": settings, "pipelines": {"copy": pipeline}}), encoding="utf-8")
    command = [sys.executable, "-m", "ottla.cli.main", "pipeline", "run", str(file), "--once", "--master", cluster.url]
    python = "./environment/bin/python" if way == "packed" else sys.executable
    environment = os.environ | {"PYSPARK_PYTHON": python}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(value) for value in committed(ottla_broker, target).elements()]
    assert sorted(one["n"] for one in found) == list(range(ROWS))
    places = {one["place"] for one in found}
    assert all(str(cluster.folder) in place.split()[0] for place in places) == (way == "packed"), places
    assert all(("ottla.zip" in place) == (way == "archive") for place in places), places


def packed(folder: Path) -> Path:
    """An environment, unpacked in `folder` for the driver, and packed; what it has lies elsewhere, so that it is small."""
    home = folder / "environment"
    venv.create(home, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    lines = "".join(f"import site; site.addsitedir({place!r})\n" for place in getsitepackages())
    (site / "elsewhere.pth").write_text(lines, encoding="utf-8")
    archive = folder / "environment.tar.gz"
    subprocess.run(["tar", "czf", archive, "-C", home, "."], check=True)
    return archive
