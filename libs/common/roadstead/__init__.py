"""Roadstead: an event-driven control plane for OpenStack regions; what every service stands on."""
