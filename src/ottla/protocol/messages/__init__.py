"""One file per API: its request, its response, and their parts.

Class and field names are Kafka's, the fields in Python's case. The texts say what the name does not.
"""
