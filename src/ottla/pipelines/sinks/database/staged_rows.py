"""Writes keyed rows to PostgreSQL by COPY into a temporary table; two statements then move them to the target table.

The result must equal that of one statement for each row in order. Rules, policies, triggers and domains could observe
single rows, so tables with any of them are written row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ottla.pipelines.databases.copying import copy_in
from ottla.pipelines.sinks.database.statements import Statements
from ottla.pipelines.sinks.upserts import DELETED

STAGE = "ottla_rows"
TURN = "ottla turn"
"""The column with the order of the rows."""
ALONE = """
select has_database_privilege(current_database(), 'TEMP') and not (relhasrules or relrowsecurity)
   and not exists (select from pg_trigger where tgrelid = c.oid and not tgisinternal)
   and not exists (select from pg_attribute a join pg_type t on t.oid = a.atttypid
                   where a.attrelid = c.oid and not a.attisdropped and t.typtype = 'd')
from pg_class c where oid = to_regclass(%s)
"""


def can_be_staged(connection: Any, quoted: str) -> bool:
    """Return True if the table cannot observe single rows, and the user may create temporary tables."""
    found = connection.execute(ALONE, (quoted,)).fetchone()
    return found is not None and bool(found[0])


@dataclass
class StagedRows:
    """The rows of one transaction. Its temporary table is dropped when the transaction ends."""

    connection: Any
    statements: Statements
    as_it_is: bool
    """True if the values' bytes have the binary format of the columns."""
    count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        for one in create_statements(self.statements):
            self.connection.execute(one)

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows after the previous ones, with or without the column `_deleted`."""
        names = list(self.statements.columns)
        turns = pa.array(range(self.count, self.count + rows.num_rows), pa.int64())
        columns = [*(rows.column(name) for name in names), turns]
        if DELETED in rows.schema.names:
            names, columns = [*names, TURN, DELETED], [*columns, rows.column(DELETED)]
        else:
            names = [*names, TURN]
        all_rows = pa.RecordBatch.from_arrays(columns, names=names)
        copy_in(self.connection, staged_table(self.statements, names), all_rows, self.as_it_is)
        self.count += rows.num_rows

    def finish(self) -> None:
        """Move the rows to the target table."""
        if self.count:
            for one in (delete_statements(self.statements), write_statements(self.statements)):
                self.connection.execute(one)


def create_statements(statements: Statements) -> Sequence[str]:
    """Return the statements that create the temporary table, with the types of the target's columns."""
    quote = statements.database.quote_column
    names = ", ".join(map(quote, statements.columns))
    table = statements.database.quote_table(statements.table)
    return (
        f"create temporary table {STAGE} on commit drop as select {names} from {table} with no data",
        f"alter table pg_temp.{STAGE} add {quote(TURN)} bigint, add {quote(DELETED)} boolean",
    )


def staged_table(statements: Statements, names: Sequence[str]) -> str:
    """Return the temporary table with the columns to copy."""
    return f"pg_temp.{STAGE} ({', '.join(map(statements.database.quote_column, names))})"


def delete_statements(statements: Statements) -> str:
    """Return the statement that deletes each row that was deleted at any time: a later row with its key is inserted as a new one."""
    quote = statements.database.quote_column
    same = " and ".join(f"t.{quote(name)} = s.{quote(name)}" for name in statements.key)
    table = statements.database.quote_table(statements.table)
    return f"delete from {table} t using pg_temp.{STAGE} s where s.{quote(DELETED)} and {same}"


def write_statements(statements: Statements) -> str:
    """Return the statement that writes the last row of each key, unless it is deleted."""
    quote = statements.database.quote_column
    key, names = (", ".join(map(quote, some)) for some in (statements.key, statements.columns))
    last = f"select distinct on ({key}) * from pg_temp.{STAGE} order by {key}, {quote(TURN)} desc"
    rows = f"select {names} from ({last}) last where {quote(DELETED)} is not true"
    return f"insert into {statements.target()} {rows} {statements.conflict()}"
