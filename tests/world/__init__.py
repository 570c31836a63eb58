"""Worlds to run scenarios in: virtual time over simulated state, a real stack over the simulator, a real stack over a real cloud."""
