"""Volumes with their claims, and volume classes."""
