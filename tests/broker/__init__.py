"""The broker over real sockets."""
