"""A request on its way: the connection that it came by, the call it is, who may connect, and the log of requests.

Knows nothing of what requests are about; handlers do.
"""
