"""Model services: the contract in `base`, and one adapter a wire format."""
