"""Whole programs written with the array API standard alone; they run on any namespace."""
