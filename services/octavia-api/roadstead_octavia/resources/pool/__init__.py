"""Pools: groups of members with one way of spreading traffic."""
