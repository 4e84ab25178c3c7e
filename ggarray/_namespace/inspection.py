"""Inspection: what the namespace can do."""

from typing import Any

import numpy as np

from ggarray._dtypes import KINDS
from ggarray._runtime.devices import Device, as_device, devices, get_default_device

_DEFAULTS = {
    "real floating": np.dtype(np.float64),
    "complex floating": np.dtype(np.complex128),
    "integral": np.dtype(np.int64),
    "indexing": np.dtype(np.int64),
}
_DTYPES = {name: np.dtype(name) for name in (*KINDS["bool"], *KINDS["numeric"])}


class NamespaceInfo:
    """What the namespace can do: the answers that the array API standard asks for."""

    def capabilities(self) -> dict[str, Any]:
        """Return the optional abilities.

        Returns
        -------
        dict
            ``"boolean indexing"`` and ``"data-dependent shapes"``, both True, and
            ``"max dimensions"``, 64.

        Examples
        --------
        >>> xp.__array_namespace_info__().capabilities()["max dimensions"]
        64
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Return the device on which arrays are created now, unless they name one.

        Returns
        -------
        Device
            As of ``get_default_device``.

        Examples
        --------
        >>> xp.__array_namespace_info__().default_device()
        ggarray.Device('cpu')
        """
        return get_default_device()

    def default_dtypes(self, *, device: str | None = None) -> dict[str, np.dtype[Any]]:
        """Return the dtypes that arrays get unless one is named.

        Parameters
        ----------
        device : Device or str, optional
            The default device if None.

        Returns
        -------
        dict of numpy.dtype
            By ``"real floating"``, ``"complex floating"``, ``"integral"`` and ``"indexing"``.

        Raises
        ------
        ValueError
            There is no such device.

        Examples
        --------
        >>> xp.__array_namespace_info__().default_dtypes()["indexing"]
        dtype('int64')
        """
        as_device(device)
        return dict(_DEFAULTS)

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """Return the standard's dtypes that a device has; the extensions are not among them.

        Parameters
        ----------
        device : Device or str, optional
            The default device if None.
        kind : str or tuple of str, optional
            Those of a kind, or of any of several; the kinds are those of ``isdtype``.

        Returns
        -------
        dict of numpy.dtype
            By name.

        Raises
        ------
        ValueError
            There is no such device or kind.

        Examples
        --------
        >>> xp.__array_namespace_info__().dtypes(kind=("bool", "complex floating"))
        {'bool': dtype('bool'), 'complex64': dtype('complex64'), 'complex128': dtype('complex128')}
        """
        as_device(device)
        if kind is None:
            return dict(_DTYPES)
        kinds = (kind,) if isinstance(kind, str) else kind
        for each in kinds:
            if each not in KINDS:
                raise ValueError(f"unknown kind {each!r} of dtypes; there are {', '.join(KINDS)}")
        wanted = {name for each in kinds for name in KINDS[each]}
        return {name: dtype for name, dtype in _DTYPES.items() if name in wanted}

    def devices(self) -> tuple[Device, ...]:
        """Return the devices of this machine.

        Returns
        -------
        tuple of Device
            As of ``devices``.

        Examples
        --------
        >>> xp.__array_namespace_info__().devices() == xp.devices()
        True
        """
        return devices()


def __array_namespace_info__() -> NamespaceInfo:  # noqa: N807 (the standard's name)
    """Return an object whose methods tell what the namespace can do.

    Returns
    -------
    NamespaceInfo
        With methods ``capabilities``, ``default_device``, ``default_dtypes``, ``devices`` and
        ``dtypes``.

    Examples
    --------
    >>> xp.__array_namespace_info__().dtypes(kind="real floating")
    {'float32': dtype('float32'), 'float64': dtype('float64')}
    >>> xp.__array_namespace_info__().default_dtypes()["integral"]
    dtype('int64')
    """
    return NamespaceInfo()
