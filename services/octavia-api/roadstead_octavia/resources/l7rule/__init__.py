"""L7 rules: conditions of a policy."""
