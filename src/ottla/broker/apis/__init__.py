"""The APIs that a broker serves, one module each, and the fast paths of Produce and Fetch (fast_produce, fast_fetch).

handlers maps an API key to its module; permissions is the table of the operations that each API requires.
"""
