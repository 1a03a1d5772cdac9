"""The command line: one command per file, imported when it is used.

ottla ─► broker | topics create, list, … | produce | consume | log dump, verify
      groups list, watch, reset-offsets, … | transactions list, find-hanging, … | trace consume

A command parses its options, calls `ottla.broker` or `ottla.client`, and prints the result.
"""
