"""The driver program: its Java, its Python interpreters, and the start of Spark."""
