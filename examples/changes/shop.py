"""A writer that changes the database continuously: it inserts, updates and deletes orders."""

from __future__ import annotations

import random
import threading
from typing import Any

import psycopg

TABLE = "create table orders (id int primary key, item text not null, amount bigint not null)"
FIRST = "insert into orders select g, 'item ' || g, g from generate_series(1, 1000) g"
PAUSE = 0.02
Rows = list[tuple[int, str, int]]


class Shop:
    """Writes in a thread until it is stopped, and waits while the database is down."""

    def __init__(self, url: str, seed: int = 1) -> None:
        self.url, self.transactions = url, 0
        self._chance = random.Random(seed)
        self._next = 1001
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        with psycopg.connect(url) as connection:
            connection.execute(TABLE)
            connection.execute(FIRST)

    def open(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def rows(self) -> Rows:
        with psycopg.connect(self.url) as connection:
            return [
                (row[0], row[1], row[2])
                for row in connection.execute("select id, item, amount from orders order by id")
            ]

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                with psycopg.connect(self.url) as connection:
                    while not self._stop.wait(PAUSE):
                        self._transaction(connection)
            except psycopg.Error:
                self._stop.wait(0.2)

    def _transaction(self, connection: Any) -> None:
        """Make a few changes in one transaction."""
        for _ in range(self._chance.randint(1, 5)):
            some = self._chance.randint(1, self._next)
            match self._chance.randint(0, 3):
                case 0:
                    connection.execute("delete from orders where id = %s", (some,))
                case 1:
                    connection.execute("update orders set amount = amount + 1 where id = %s", (some,))
                case _:
                    self._next += 1
                    connection.execute(
                        "insert into orders values (%s, %s, %s)", (self._next, f"item {self._next}", some)
                    )
        connection.commit()
        self.transactions += 1
