"""The program that has the session: its Java, its Pythons, and how its Spark is started."""
