"""`ottla produce`, `consume`, `records` and `sql`: records between topics and a shell, and how they are written there."""
