"""Runs pipelines: builds them, starts them one after the other in one Spark session, minds them, and tells how they are.

reading ──► build ──► fingerprint ──► manager ──► Life of each ──► told, status
"""
