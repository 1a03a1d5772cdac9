"""Topics read, as a batch and as a stream: the plan on the driver, a range in a task."""
