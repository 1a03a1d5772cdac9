"""A node that votes has lost the end of its log of the metadata since it was stopped, and with it what it has promised to keep."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ottla import Admin, Cluster, NewTopic
from ottla.errors import OttlaError
from ottla.storage.batches.scan import scan
from ottla.storage.files.open_file import OpenFile
from ottla.storage.state_log.check import START_OVER

pytestmark = pytest.mark.heavy

TOLD = {30: "30 bytes at position .* are damaged", 0: "the log ends at offset"}
"""By how much is left of the last batch."""


@pytest.mark.behaviour("B2", "B4")
def test_a_truncated_voters_log_prevents_every_start_with_a_remedy(tmp_path: Path) -> None:
    with Cluster(data_dir=tmp_path) as cluster:
        with Admin(cluster.client_settings()) as admin:
            admin.create_topics([NewTopic("t", 3)])
        cluster.stop(*cluster.nodes)
        path = tmp_path / "node-2" / "__cluster_metadata-0" / f"{0:020d}.log"
        *_, (last, _) = scan(OpenFile(path, read=True), 0, path.stat().st_size)
        for left, reported in TOLD.items():
            os.truncate(path, last + left)
            for _ in range(2):
                with pytest.raises(OttlaError, match=f"nothing was changed: .*{reported}.*{START_OVER}"):
                    cluster.start(2)
            assert path.stat().st_size == last + left
