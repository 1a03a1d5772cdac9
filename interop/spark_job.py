"""A Spark job that copies a topic exactly once, in a process that may be killed at any moment.

python -m interop.spark_job MASTER ADDRESS SOURCE TARGET CHECKPOINT [SETTING=VALUE …]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import ottla.spark


def copy(master: str, address: str, source: str, target: str, checkpoint: str, *settings: str) -> None:
    """Copy the records that exist now, in batches of sixty."""
    spark = ottla.spark.session(
        "copy",
        master,
        spark__driver__memory="512m",
        spark__driver__extraJavaOptions="-XX:TieredStopAtLevel=1",
        spark__log__level="OFF",
        **{name.replace(".", "__"): value for name, value in (setting.split("=", 1) for setting in settings)},
    )
    if "OTTLA_DRIVER" in os.environ:
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        Path(os.environ["OTTLA_DRIVER"]).write_text(f"{gateway.proc.pid} {os.getpid()}")
    options = {"kafka.bootstrap.servers": address, "subscribe": source, "startingOffsets": "earliest"}
    frame = spark.readStream.format("ottla").options(**options, maxOffsetsPerTrigger="60").load()
    query = (
        frame.select("key", "value")
        .writeStream.format("ottla")
        .options(**{"kafka.bootstrap.servers": address, "topic": target, "deliveryGuarantee": "exactly_once"})
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    print("done", flush=True)


if __name__ == "__main__":
    copy(*sys.argv[1:])
