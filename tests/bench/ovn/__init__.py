"""Speed of the OVN worker beside the original provider, and of the whole path from an accepted creation to ACTIVE."""
