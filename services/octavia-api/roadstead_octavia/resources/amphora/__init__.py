"""Amphorae: machines of the amphora provider; rows that an import brought."""
