"""Tools of the event loop: timers, calls from other threads, threads for blocking disk access, rate-limited logging."""
