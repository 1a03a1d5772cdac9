"""The programs that `make` runs."""
