"""A pack that is configured: settings, a secret, folders, and what each part of it reaches of them."""
