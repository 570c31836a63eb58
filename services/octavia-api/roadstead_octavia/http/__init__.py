"""Routing, negotiation, identity, error bodies."""
