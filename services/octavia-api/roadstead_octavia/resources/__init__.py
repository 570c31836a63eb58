"""One folder a resource: `wire.py` (description), `rules.py` (pure checks and the change they lead to), `operations.py`."""
