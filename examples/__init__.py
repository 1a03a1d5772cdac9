"""Example programs, each in a folder of its own."""
