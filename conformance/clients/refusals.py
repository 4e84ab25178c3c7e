"""What client libraries refuse to any array library that they do not know by name.

The test module of each library holds its lines: what is refused is tried there.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """Something that a client does not do with ggarray's arrays, whatever these may do."""

    library: str
    """The distribution."""
    version: str
    """Its version, to which the line applies."""
    what: str
    """What it refuses."""
    reason: str
    """Why, and what happens instead."""


SCIPY = ("scipy", "1.17.1")
SCIKIT_LEARN = ("scikit-learn", "1.9.1")

REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        *SCIPY,
        "linalg, but for block_diag, fiedler and orthogonal_procrustes",
        "has no array API path: arrays become NumPy's and so do results; ggarray.linalg has most",
    ),
    Refusal(
        *SCIPY,
        "stats: distributions, linregress and others that SciPy documents for NumPy alone",
        "they have no array API path: arrays become NumPy's and so do results",
    ),
    Refusal(
        *SCIPY,
        "signal: welch, find_peaks and others that SciPy documents for NumPy alone",
        "they have no array API path: arrays become NumPy's and so do results",
    ),
    Refusal(
        *SCIPY,
        "signal.cspline2d",
        "is documented to return the arrays it is given, and returns NumPy's",
    ),
    Refusal(
        *SCIPY,
        "signal.impulse",
        "makes NumPy arrays of its own beside those it is given: TypeError, two namespaces",
    ),
    Refusal(
        *SCIPY,
        "interpolate.RBFInterpolator with neighbors",
        "its k-d tree knows NumPy alone: NotImplementedError",
    ),
    Refusal(
        *SCIPY,
        "devices, where a function is computed by NumPy",
        "the way back is an asarray without a device: the result is on the default one",
    ),
    Refusal(
        *SCIPY,
        "spatial.transform.Rotation.reduce with one of two groups",
        "takes ones for the other group where NumPy's path takes none: wrong for every library",
    ),
    Refusal(
        *SCIKIT_LEARN,
        "estimators that scikit-learn does not list, such as SVR and GammaRegressor",
        "compiled for NumPy's memory: TypeError with array_api_dispatch, NumPy's arrays without",
    ),
    Refusal(
        *SCIKIT_LEARN,
        "Ridge with another solver than svd",
        "svd is the only solver of its array API path: ValueError",
    ),
    Refusal(
        *SCIKIT_LEARN,
        "StandardScaler without a warning",
        "it silences its expected division by zero for NumPy's own arrays alone",
    ),
    Refusal(
        "xarray",
        "2026.9.0",
        "vectorized indexing",
        "has none for arrays of the standard: TypeError; index one dimension at a time",
    ),
    Refusal(
        "xarray",
        "2026.9.0",
        "std and var with skipna=False",
        "pass ddof, which the standard does not have: TypeError; by default they work",
    ),
    Refusal(
        "xarray",
        "2026.9.0",
        "where with a condition on a coordinate of NumPy's",
        "gives NumPy's array to the namespace's astype: TypeError; make the condition an Array",
    ),
    Refusal(
        "xarray",
        "2026.9.0",
        "interp, interpolate_na and apply_ufunc with vectorize",
        "are computed by SciPy's and NumPy's functions, and give NumPy's arrays",
    ),
    Refusal(
        "xarray",
        "2026.9.0",
        "polyfit",
        "passes out to the namespace's any: TypeError",
    ),
    Refusal(
        "xarray",
        "2026.9.0",
        "devices, where a constant of xarray's takes part",
        "it is made by an asarray without a device, so it is on the default one",
    ),
    Refusal(
        "einops",
        "0.8.2",
        "einops.rearrange and the others outside einops.array_api",
        "know a fixed list of libraries: RuntimeError; einops.array_api has the same functions",
    ),
    Refusal(
        "autoray",
        "0.11.0",
        "names of NumPy's that the standard spells otherwise, or has not",
        "are looked up in the namespace: ImportError; autoray.register_function adds them",
    ),
    Refusal(
        "autoray",
        "0.11.0",
        "reductions and tensordot of lazy arrays",
        "pass axes by their place, which the standard takes by name alone: TypeError",
    ),
    Refusal(
        "autoray",
        "0.11.0",
        "devices, where it makes an array",
        "do('zeros', like=x) and the like name no device: the result is on the default one",
    ),
    Refusal(
        "dask",
        "2026.8.0",
        "linalg.solve, solve_triangular, inv, lu and lstsq",
        "solve by SciPy beside NumPy's arrays: these, or with SCIPY_ARRAY_API a TypeError",
    ),
    Refusal(
        "dask",
        "2026.8.0",
        "percentile",
        "has a list of its own of the kinds of chunks it takes: TypeError",
    ),
    Refusal(
        "dask",
        "2026.8.0",
        "nonzero and argwhere",
        "make the indices themselves, as NumPy's arrays",
    ),
    Refusal(
        "cubed",
        "0.27.0",
        "var and std",
        "pass a dtype to the namespace's mean, which the standard does not have: TypeError",
    ),
    Refusal(
        "cubed",
        "0.27.0",
        "devices",
        "it names none: chunks are stored, and come back on the default device of the process",
    ),
    Refusal(
        "matplotlib",
        "3.11.2",
        "a colour given as an array of its parts",
        "it knows NumPy's arrays by their class: ValueError; x.tolist() is taken",
    ),
)
