"""Listeners: where traffic comes in."""
