"""The Octavia v2 API: parse, authorise, validate, one transaction, one operation for the provider; reports end it."""
