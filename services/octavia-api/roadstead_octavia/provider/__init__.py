"""The provider seam: calls, reports, operations that end."""
