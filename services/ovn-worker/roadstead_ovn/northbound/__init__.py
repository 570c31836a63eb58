"""The Northbound database: what is in it, how a load balancer's rows differ from the wanted ones, and the one transaction between."""
