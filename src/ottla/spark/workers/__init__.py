"""The processes in which Spark runs Python: their start, and work done once for all of their tasks."""
