"""Who computes products: one folder per backend, each a model for one outside this package."""
