"""Members: what traffic goes to."""
