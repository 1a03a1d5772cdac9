"""What goes on in a broker, for whoever of its own user looks, where `trace.folder` says that they may (decision 0093).

    node ──► pictures, taken in the loop ──► window: a socket in the folder ──► `ottla trace broker`, the console
    groups, purgatory, cleaner ──► events, as they happen ──┘

Nothing here is loaded without that setting, and nothing told while nobody looks.
"""
