"""Load balancers: the root of every tree; the VIP is shown as attributes of it."""
