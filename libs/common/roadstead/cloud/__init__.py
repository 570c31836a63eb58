"""Access to OpenStack: one port, two executors, and one place each for verdicts, look-ups, paging, names, limits."""
