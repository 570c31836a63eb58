"""What `deploy/` ships, read and held against the product: settings, ports, metrics, services."""
