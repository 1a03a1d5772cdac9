"""What `make` runs."""
