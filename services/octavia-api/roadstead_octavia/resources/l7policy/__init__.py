"""L7 policies: what happens to requests that match all rules."""
