"""A broker's registration with the active controller, its heartbeats, and its channel for requests to the controller."""
