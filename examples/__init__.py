"""Programs to read and run, each in a folder of its own."""
