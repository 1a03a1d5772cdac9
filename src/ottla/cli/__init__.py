"""The command line: one verb per file, loaded when it is called for.

ottla ─► broker | topics create, list, describe, delete | produce | consume | log dump, verify

Starts or calls things and prints; what they do is the business of `broker` and `client`.
"""
