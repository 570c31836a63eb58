"""Load balancers of a region through our own Octavia API."""
