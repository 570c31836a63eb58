"""Moving an existing Octavia database over: read (`dump`, `server`, `pickled`), made fit (`fitting`), written and counted (`loading`)."""
