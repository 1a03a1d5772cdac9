"""The processes in which Spark runs Python: how they start, and what is once done for all of their tasks."""
