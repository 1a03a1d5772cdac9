"""PostgreSQL's changes through a topic into a Delta table that equals the database, whatever is killed on the way."""
