"""Databases, as sources and sinks need them: how they are named and reached, what tables have, which types their columns are.

url ──► Database (SQLite, PostgreSQL, MySQL) ──► Table ──► rows as Arrow

The rule: what a driver says becomes a sentence that names the database, and no password.
"""
