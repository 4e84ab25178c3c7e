"""Choices that a user makes: devices, threads, options, plugins."""
