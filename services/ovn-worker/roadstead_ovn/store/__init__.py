"""The worker's own schema: one row of work for each load balancer, and leases of what only one worker may do."""
