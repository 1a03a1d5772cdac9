"""Measure the memory of a Python worker of Spark while it reads 5 GB from a topic."""

from __future__ import annotations

import threading

import psutil

import ottla.spark
from ottla import Admin, Broker, NewTopic, Producer

BYTES = 5_000_000_000
VALUE = bytes(1000)
CHUNK = 20_000


class Watch(threading.Thread):
    """Records the largest resident set of any Spark worker among the descendants of this process."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.1):
            for child in psutil.Process().children(recursive=True):
                try:
                    if "pyspark.daemon" in child.cmdline() or "pyspark/daemon.py" in " ".join(child.cmdline()):
                        self.most = max(self.most, child.memory_info().rss)
                except psutil.Error:
                    continue


def worker_memory(size_bytes: int | None = None) -> None:
    """Fill a topic, read it into `noop`, and print the maximum memory of a worker."""
    import pyarrow as pa

    size = size_bytes or BYTES
    records = size // len(VALUE)
    values = pa.table({"value": pa.array([VALUE] * CHUNK, pa.binary())})
    with Broker(process=True) as broker:
        with Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("large", 2, 1)])
        with Producer(bootstrap_servers=broker.bootstrap_servers, batch_size=1_000_000, linger_ms=50) as producer:
            for _ in range(records // CHUNK):
                producer.send_table("large", values)
            producer.flush()
        spark = ottla.spark.session("memory", "local[2]", spark__driver__memory="2g", spark__log__level="ERROR")
        options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "subscribe": "large"}
        watch = Watch()
        watch.start()
        spark.read.format("ottla").options(**options).load().write.format("noop").mode("overwrite").save()
        watch.over.set()
        watch.join()
        spark.stop()
    print(f"a Python worker that reads {size / 2e9:.1f} of {size / 1e9:.1f} GB: {watch.most / 1e6:.0f} MB at most")


if __name__ == "__main__":
    worker_memory()
