"""Health monitors: how members of a pool are checked."""
