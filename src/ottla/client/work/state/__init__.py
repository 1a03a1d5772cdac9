"""The decisions of a worker: pure, without connections, threads, clocks and chance."""
