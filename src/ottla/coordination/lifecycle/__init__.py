"""The life of a broker among others: it registers, beats, is let in, and goes (KIP-631)."""
