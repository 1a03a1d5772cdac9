"""What a worker decides: pure, without connections, threads, clocks and chance."""
