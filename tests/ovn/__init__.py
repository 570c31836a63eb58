"""Load balancers with a real OVN: rows, packets, losses, and the provider that was there before."""
