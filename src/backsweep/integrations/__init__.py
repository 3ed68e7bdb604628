"""Adapters for other frameworks. Each framework is imported only by its own module."""
