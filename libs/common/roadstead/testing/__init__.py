"""Test tools of the product: the cloud simulator, embedded servers, pytest fixtures."""
