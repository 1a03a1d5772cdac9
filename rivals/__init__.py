"""Whom Ottla is measured against and must get along with, started from Maven Central's jars."""
