"""Load balancers, as a client of the Octavia that the region's catalog names."""
