"""The Octavia API against recorded exchanges of the original, and what drives it from data: never part of a running service."""
