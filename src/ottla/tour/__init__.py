"""A guided tour of Kafka, played step by step by real clients on a broker of their own.

python -m ottla.tour NAME ── a JSON line per step, then it waits for a line ── … ── {"ended": true}

`chapters` contains the steps and their explanations, `stage` the broker and the clients; `__main__` plays one chapter.
The console starts it, with a folder for OTTLA_TRACE, and draws the clients that a step names. No other module imports
it.
"""
