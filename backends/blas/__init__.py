"""The BLAS backend: libraries of vendors, found at run time."""

from ggarray.backends.blas.device import registry

__all__ = ["registry"]
