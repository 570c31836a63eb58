"""The reference provider: a process of its own that agrees to everything, does nothing and reports that it is done."""
