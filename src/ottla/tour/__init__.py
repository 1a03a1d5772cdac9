"""A guided tour: Kafka's moving parts, played step by step by real clients on a broker of their own.

    python -m ottla.tour NAME ── a line of JSON for each step, then it waits for a line ── … ── {"ended": true}

`chapters` says what happens and what it means, `stage` has the broker and the clients, `__main__` plays one chapter. The console starts
it, with a folder for OTTLA_TRACE, and draws the clients that a step names. It is loaded by no other part.
"""
