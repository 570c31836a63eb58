"""Availability zone profiles: settings that a provider understands, as JSON text."""
