"""Requests over HTTP: routes, bodies of answers and refusals, paging, identities, discovery and health."""
