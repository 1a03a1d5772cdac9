"""`python -m examples.changes`: starts a PostgreSQL, a broker and the pipelines, and kills each of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from examples.changes.shop import Shop
from examples.changes.story import Pipelines, differences, wait_for
from examples.flights.faults import MortalBroker
from rivals.postgresql import Server, postgresql


def kills(pipelines: Pipelines, server: Server, broker: MortalBroker) -> list[tuple[str, Callable[[], object]]]:
    """Return the kills in order, as pairs of a name and a function."""

    def database() -> None:
        server.kill()
        server.start()

    def everything() -> None:
        pipelines.kill()
        pipelines.start()

    def driver() -> None:
        pipelines.kill_java()
        pipelines.start()

    return [
        ("the manager with all its processes", everything),
        ("PostgreSQL", database),
        ("the broker", broker.kill),
        ("Spark's Python workers", pipelines.kill_workers),
        ("Spark's driver", driver),
    ]


def two_batches(pipelines: Pipelines) -> None:
    """Wait until two more batches are in the table, so that the pipelines are working again after a kill."""
    seen = pipelines.batches("orders-table")
    wait_for(lambda: pipelines.batches("orders-table") >= seen + 2, pipelines, "two batches")


def run(folder: Path) -> tuple[int, int]:
    """Run the example. Returns the numbers of missing and of surplus rows."""
    with postgresql() as server, closing(MortalBroker(str(folder / "broker"))) as broker:
        shop = Shop(server.url)
        pipelines = Pipelines(folder, broker.address, server.url)
        pipelines.start()
        shop.open()
        try:
            for what, kill in kills(pipelines, server, broker):
                two_batches(pipelines)
                print(f"{shop.transactions} transactions; killing {what}", flush=True)
                kill()
            two_batches(pipelines)
            shop.close()
            wait_for(lambda: differences(shop, folder) == (0, 0), pipelines, "that the table equals the database")
            pipelines.stop()
        finally:
            shop.close()
            pipelines.kill()
        found = differences(shop, folder)
        print(f"{shop.transactions} transactions, {len(shop.rows())} orders: {found[0]} missing, {found[1]} too many")
        return found


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        raise SystemExit(run(Path(name)) != (0, 0))
