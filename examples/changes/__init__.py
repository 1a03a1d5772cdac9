"""Changes of a PostgreSQL table through a topic into a Delta table, which equals it at the end despite kills."""
