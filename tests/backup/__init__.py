"""Backups of real brokers, and the format of their files."""
