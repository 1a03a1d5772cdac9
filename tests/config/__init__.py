"""Tests of the settings table."""
