"""Proofs that a program written to the array API standard runs on ggarray as on its peers."""
