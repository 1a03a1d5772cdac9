"""The command line: one verb per file, loaded when it is called for.

ottla ─► broker | topics create, list, … | produce | consume | log dump, verify
         groups list, watch, reset-offsets, … | transactions list, find-hanging, … | trace consume

Starts or calls things and prints; what they do is the business of `broker` and `client`.
"""
