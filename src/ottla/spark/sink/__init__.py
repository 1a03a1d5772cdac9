"""Rows written to topics: judged, sent, and told where they cannot be."""
