"""The devices ``reference`` and ``reference:remote``: products in double precision, rounded once.

They are slow and make no mistakes: what another backend computes can be judged by them. They are
also a model of a backend that has all of the interface. ``reference`` reads and writes the host's
memory in place; ``reference:remote`` has memory of its own, to which values have to be copied.
"""

from ggarray_plugin_backends.reference.devices import registry

__all__ = ["registry"]
