"""The functions of the standard, one module per chapter."""
