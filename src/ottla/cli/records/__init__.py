"""`ottla produce`, `consume`, `records` and `sql`: records and their text formats."""
