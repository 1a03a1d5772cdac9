"""Runs machines of `coordination` over logs: appends what they decide, replays it, hands out replies, rings alarms."""
