"""Servers, images and flavors."""
