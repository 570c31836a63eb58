"""Measured figures, side by side with what they compare to: `make bench`."""
