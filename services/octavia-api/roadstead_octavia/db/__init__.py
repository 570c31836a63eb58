"""PostgreSQL: the original's tables, whole reads and one transaction per change."""
