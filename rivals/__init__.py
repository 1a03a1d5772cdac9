"""The systems that Ottla is compared and tested with, started from Maven Central's jars."""
