"""The OVN worker: a load balancer's tree and the network's facts become rows of the Northbound database.

What stands here is pure: what is wanted (`render`), how it stands (`health`), what cannot be done (`check`), and how rows compare (`rows`).
"""
