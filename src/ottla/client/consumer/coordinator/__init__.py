"""The group coordinator from the client's view: finding it, its errors, and the member's generation."""
