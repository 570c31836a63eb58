"""The Octavia API as it runs: real processes, a real database and broker, the simulated cloud, clients that nobody changed."""
