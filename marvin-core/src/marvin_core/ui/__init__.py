"""Interfaces: the contract in `base`, and the built-in ones."""
