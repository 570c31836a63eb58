"""Descriptions of the resources, and the one reader and writer that they drive."""
