"""Chaos: real broker, real database, real processes of every service; they are killed, frozen, cut off and lied to."""
