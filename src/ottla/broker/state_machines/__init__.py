"""Run a state machine of `coordination` over a log: append its decisions, replay them, send replies, fire alarms."""
