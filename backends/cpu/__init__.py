"""The CPU backend: ggarray's own kernels, compiled for several instruction sets."""

from ggarray.backends.cpu.device import registry

__all__ = ["registry"]
