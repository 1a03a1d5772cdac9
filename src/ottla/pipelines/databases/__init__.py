"""Databases for sources and sinks: addresses, connections, tables, and the types of their columns.

    url ──► Database (SQLite, PostgreSQL, MySQL) ──► Table ──► rows as Arrow

Errors of drivers are raised as DatabaseErrors that name the database, without a password.
"""
