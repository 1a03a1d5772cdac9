"""Runs pipelines: builds them, starts them one after the other in one Spark session, supervises them, and reports their status.

reading ──► build ──► fingerprint ──► manager ──► Life of each ──► events, status
"""
