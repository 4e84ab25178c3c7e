"""The one place that states the version; the build compiles it into the kernels."""

__version__ = "0.1.0"
