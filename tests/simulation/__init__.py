"""Histories drawn by chance, in virtual time: the real pure parts, and a world between them that does its worst.

Each history comes of a seed, and a failure prints it: `OTTLA_SEED=… pytest tests/simulation` plays that one again, with
everything that happened in it. There is no socket, no thread, no sleep.
"""
