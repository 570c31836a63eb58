"""The provider that was there before, from its wheel, in an environment of its own: on the same database, and beside ours in benches."""
