"""The settings of all clients, and the names that other libraries and other clients use for them."""
