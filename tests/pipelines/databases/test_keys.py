"""The unique keys of tables: the columns that an upsert can use."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from ottla.errors import ConfigError
from ottla.pipelines.databases.url import database_of
from ottla.pipelines.sinks.database.model import check_key
from ottla.pipelines.sinks.database.statements import Statements
from tests.pipelines.either import either_of

TABLE = "create table orders (id integer primary key, item varchar(20), shop varchar(20), more varchar(20))"
UNIQUE = "create unique index one on orders (shop, item)"
NONE: dict[str, list[str]] = {
    "sqlite": ["(more) where id > 5", "(lower(more))", "(lower(item), more)"],
    "postgresql": ["(more) where id > 5", "(lower(more))", "(lower(item), more)"],
    "mysql": ["(more(3))", "(item, more(3))"],
}
"""Unique indexes that do not identify all rows."""


@pytest.mark.parametrize("kind", NONE)
def test_rows_are_found_by_the_primary_key_and_by_what_is_unique_in_all_rows(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    either = either_of(kind, request, tmp_path)
    either.run(TABLE, UNIQUE, "create index often on orders (more)", "create view seen as select * from orders")
    either.run(*(f"create unique index none{number} on orders {on}" for number, on in enumerate(NONE[kind])))
    database = database_of(either.url, tmp_path)
    with closing(database.open()) as connection:
        orders, seen = (database.describe_table(connection, name) for name in ("orders", "seen"))
        keys = database.find_keys(connection, orders)
        assert list(map(tuple, keys or ())) == [("id",), ("shop", "item")]
        assert database.find_keys(connection, seen) is None
    for key in (("id",), ("item", "shop")):
        check_key(orders, keys, Statements(database, "orders", (), key))
    check_key(seen, None, Statements(database, "seen", (), ("more",)))
    with pytest.raises(ConfigError) as error:
        check_key(orders, keys, Statements(database, "orders", (), ("item", "more")))
    assert str(error.value) == (
        "pk.fields: item, more is not unique in table orders, which has id or shop, item; use that, or "
        "`create unique index on orders (item, more)`"
    )


def test_included_columns_of_a_postgresql_index_are_not_its_key(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    sql = either_of("postgresql", request, tmp_path)
    sql.run(TABLE.replace(" primary key", ""), "create unique index one on orders (item) include (more)")
    sql.run("alter table orders add constraint late unique (shop) deferrable")
    database = database_of(sql.url, tmp_path)
    with closing(database.open()) as connection:
        assert database.find_keys(connection, database.describe_table(connection, "orders")) == [["item"]]
