"""The controller role's parts, and a broker's way to the active controller; all in the event loop.

lifecycle_driver: registration and heartbeats · metadata_fetcher, local_metadata: what was decided · controller_channel: requests
"""
