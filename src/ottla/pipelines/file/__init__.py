"""The pipeline file: read with places, checked whole, and described as JSON Schema."""
