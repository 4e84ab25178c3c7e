"""Work for SciPy: every function that its own table says takes arrays of other libraries.

`CASES` has the work by the function's name; each takes a `Given` and returns arrays.
"""

import functools

import numpy as np
import scipy.cluster.hierarchy
import scipy.optimize.elementwise
from scipy import (
    cluster,
    constants,
    differentiate,
    fft,
    integrate,
    interpolate,
    linalg,
    ndimage,
    optimize,
    signal,
    spatial,
    special,
    stats,
)

_RNG = np.random.default_rng(1)
_IMAGE = _RNG.standard_normal((9, 10))
_POINTS = np.concatenate([_RNG.normal(at, 0.3, (8, 2)) for at in (0.0, 5.0, 9.0)])

DATA = {
    "x": _RNG.standard_normal(24),
    "y": _RNG.standard_normal(24) + 0.5,
    "w": _RNG.standard_normal(24) * 2,
    "positive": _RNG.uniform(0.5, 4.0, 24),
    "others": _RNG.uniform(1.0, 3.0, 24),
    "share": _RNG.uniform(0.05, 0.95, 24),
    "whole": _RNG.integers(1, 6, 24).astype(float),
    "more": _RNG.integers(6, 12, 24).astype(float),
    "number": _RNG.integers(1, 6, 24),
    "trials": _RNG.integers(6, 12, 24),
    "counts": _RNG.integers(5, 30, 8),
    "angles": _RNG.uniform(0.0, 6.0, 24),
    "m": _RNG.standard_normal((6, 8)),
    "n": _RNG.standard_normal((6, 8)),
    "z": _RNG.standard_normal((4, 6)) + 1j * _RNG.standard_normal((4, 6)),
    "image": _IMAGE,
    "photo": _RNG.standard_normal((40, 40)),
    "mask": _IMAGE > 0.2,
    "spots": (_IMAGE > 0.5).astype(int),
    "regions": np.repeat([[1, 1, 2, 2, 3]], 9, axis=0).repeat(2, axis=1),
    "kernel": np.array([[0.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 0.0]]),
    "cross": np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], dtype=bool),
    "taps": np.array([0.25, 0.5, 0.25]),
    "points": _POINTS,
    "centres": np.array([[0.0, 0.0], [5.0, 5.0], [9.0, 9.0]]),
    "tree": scipy.cluster.hierarchy.linkage(_POINTS, "average"),
    "knots": np.linspace(0.0, 5.0, 11),
    "values": np.sin(np.linspace(0.0, 5.0, 11)),
    "slopes": np.cos(np.linspace(0.0, 5.0, 11)),
    "between": np.linspace(0.1, 4.9, 7),
    "quaternions": _RNG.standard_normal((5, 4)),
    "vectors": _RNG.standard_normal((5, 3)),
    "wave": np.sin(np.linspace(0.0, 20.0, 64)) + 0.1 * _RNG.standard_normal(64),
    "b": np.array([0.2, 0.3, 0.2]),
    "a": np.array([1.0, -0.4, 0.2]),
    "zeros": np.array([-0.5 + 0.2j, -0.5 - 0.2j]),
    "poles": np.array([0.4 + 0.3j, 0.4 - 0.3j]),
    "sos": np.array([[0.2, 0.3, 0.1, 1.0, -0.4, 0.2], [1.0, 0.5, 0.2, 1.0, 0.2, 0.1]]),
    "matrix": np.array([[1.0, 2.0], [3.0, 4.0]]),
    "inputs": np.array([[1.0], [0.0]]),
    "bands": np.array([0.0, 0.15, 0.25, 0.5]),
    "low": np.array([0.0, 0.0]),
    "high": np.array([1.0, 2.0]),
}

CASES = {}


# Functions that leave results on the device of the arrays. Others compute them with NumPy.
KEEP_DEVICE = {
    f"{module}.{name}"
    for module, names in {
        "cluster.hierarchy": (
            "average centroid complete median single ward weighted linkage cophenet inconsistent"
            " maxdists leaves_list to_mlab_linkage is_monotonic maxinconsts maxRstat leaders"
            " optimal_leaf_ordering is_isomorphic"
        ),
        "cluster.vq": "whiten",
        "constants": "convert_temperature lambda2nu nu2lambda",
        "fft": (
            "fft ifft fft2 ifft2 fftn ifftn hfft hfft2 hfftn irfft irfft2 irfftn rfft rfft2 rfftn"
            " ihfft ihfft2 ihfftn fftshift ifftshift fht ifht fftfreq rfftfreq"
        ),
        "integrate": "trapezoid cumulative_trapezoid nsum",
        "linalg": "fiedler orthogonal_procrustes",
        "optimize": "rosen rosen_der",
        "signal": (
            "get_window fftconvolve oaconvolve normalize lp2lp_zpk freqs hilbert envelope hilbert2"
            " resample gauss_spline minimum_phase buttap besselap cheb1ap cheb2ap ellipap buttord"
            " cheb1ord cheb2ord ellipord place_poles"
        ),
        "signal.windows": (
            "barthann bartlett blackman blackmanharris bohman boxcar cosine flattop hamming hann"
            " nuttall parzen taylor triang tukey exponential gaussian general_hamming"
            " kaiser_bessel_derived general_gaussian general_cosine chebwin"
        ),
        "spatial.transform.RigidTransform": (
            "from_components from_matrix from_rotation from_translation from_exp_coords"
            " from_dual_quat apply concatenate inverse mean product power"
        ),
        "spatial.transform.Rotation": (
            "from_quat from_matrix from_rotvec from_euler from_mrp as_davenport align_vectors apply"
            " approx_equal concatenate magnitude mean reduce iteration product power slerp"
        ),
        "special": "logsumexp softmax log_softmax rel_entr xlogy",
        "stats": (
            "skew kurtosis sem variation zscore iqr gstd tstd tsem tvar tmean moment kstat kstatvar"
            " gmean hmean gzscore pmean zmap tmax tmin describe trim_mean median_abs_deviation"
            " quantile sigmaclip circmean circstd circvar directional_stats entropy"
            " differential_entropy boxcox_llf yeojohnson_llf false_discovery_control"
            " permutation_test bootstrap monte_carlo_test"
        ),
    }.items()
    for name in names.split()
}

# Of results that are differences of nearly equal numbers.
TOLERANCES = {"differentiate.hessian": 1e-6}


def work(module, names, call, note=""):
    """Add a case for each of a module's functions, which `call` calls on the data."""
    for name in names.split():
        title = f"{module.__name__.removeprefix('scipy.')}.{name}{note}"
        assert title not in CASES
        CASES[title] = functools.partial(call, getattr(module, name))


def fields(result, names):
    """Return these attributes of a result that is no tuple."""
    return [getattr(result, name) for name in names.split()]


def _mean_difference(x, y, axis=-1):
    xp = x.__array_namespace__()
    return xp.mean(x, axis=axis) - xp.mean(y, axis=axis)


def _mean(x, axis=-1):
    return x.__array_namespace__().mean(x, axis=axis)


def _neighbours(line, out):
    out[...] = line[:-2] + line[2:]


def _second_difference(image, axis, output, mode, cval):
    return ndimage.correlate1d(image, [1, -2, 1], axis, output, mode, cval)


# -- special ------------------------------------------------------------------------------------

work(
    special,
    "erf erfc erfcx cbrt cosdg cosm1 sindg tandg cotdg exp10 exp2 exprel expit log_ndtr ndtr i0 i0e"
    " i1 i1e j0 j1 sinc spence logsumexp softmax log_softmax",
    lambda f, g: f(g.x + 0.1),
)
work(
    special,
    "digamma psi entr exp1 expi gamma gammaln gammasgn k0 k0e k1 k1e loggamma rgamma y0 y1 zetac",
    lambda f, g: f(g.positive),
)
work(special, "erfinv logit ndtri ellipk ellipkm1", lambda f, g: f(g.share))
work(
    special,
    "betaln binom gammainc gammaincc kl_div rel_entr poch huber pseudo_huber xlogy xlog1py boxcox"
    " boxcox1p inv_boxcox inv_boxcox1p chdtr chdtrc",
    lambda f, g: f(g.positive, g.others),
)
work(special, "zeta", lambda f, g: f(g.others + 1.0, g.positive))
work(special, "gammainccinv gammaincinv chdtri", lambda f, g: f(g.others, g.share))
work(special, "betainc betaincc betaincinv", lambda f, g: f(g.positive, g.others, g.share))
work(special, "fdtr fdtrc gdtr gdtrc", lambda f, g: f(g.whole, g.others, g.positive))
work(special, "fdtri", lambda f, g: f(g.whole, g.others, g.share))
work(special, "hyp1f1", lambda f, g: f(g.positive, g.others, g.x))
work(special, "stdtr stdtrit", lambda f, g: f(g.whole, g.share))
work(special, "pdtr pdtrc expn yn", lambda f, g: f(g.whole, g.positive))
work(special, "polygamma", lambda f, g: f(2, g.positive))
work(special, "multigammaln", lambda f, g: f(g.positive + 2.0, 3))
work(special, "pdtri", lambda f, g: f(g.whole, g.share))
work(special, "bdtr bdtrc bdtri nbdtr nbdtrc nbdtri", lambda f, g: f(g.number, g.trials, g.share))
work(special, "lpmv", lambda f, g: f(g.whole, g.more, g.share))
work(special, "radian", lambda f, g: f(g.whole, g.more, g.positive))
work(special, "logsumexp", lambda f, g: f(g.m, axis=1, b=abs(g.n), keepdims=True), " weighted")

# -- fft ----------------------------------------------------------------------------------------

work(fft, "fft ifft fft2 ifft2 fftn ifftn hfft hfft2 hfftn", lambda f, g: f(g.z))
work(fft, "fft ifft fftn", lambda f, g: f(g.m, norm="ortho"), " of real")
work(fft, "irfft irfft2 irfftn", lambda f, g: f(g.z))
work(fft, "rfft rfft2 rfftn ihfft ihfft2 ihfftn", lambda f, g: f(g.m))
work(fft, "dct dctn dst dstn idct idctn idst idstn", lambda f, g: f(g.m, type=3))
work(fft, "fftshift ifftshift", lambda f, g: f(g.m, axes=0))
work(fft, "fht ifht", lambda f, g: f(g.x, 0.1, 1.5, offset=0.2))
work(fft, "fftfreq rfftfreq", lambda f, g: f(9, 0.5, xp=g.xp, device=g.device))

# -- stats --------------------------------------------------------------------------------------

work(
    stats,
    "skew kurtosis sem variation zscore iqr gstd tstd tsem tvar tmean",
    lambda f, g: f(g.positive),
)
work(stats, "skew kurtosis moment zscore kstat kstatvar", lambda f, g: f(g.x), " of either sign")
work(stats, "gmean hmean gzscore", lambda f, g: f(g.positive))
work(stats, "pmean", lambda f, g: f(g.positive, 3))
work(stats, "moment", lambda f, g: f(g.m, order=3, axis=1))
work(stats, "zmap", lambda f, g: f(g.x, g.y))
work(stats, "tmax tmin", lambda f, g: f(g.x, 0.5))
work(stats, "kstat kstatvar", lambda f, g: f(g.x, 2))
work(stats, "lmoment", lambda f, g: f(g.x))
work(stats, "describe", lambda f, g: f(g.m, axis=None))
work(stats, "trim_mean", lambda f, g: f(g.m, 0.1))
work(stats, "median_abs_deviation mode rankdata", lambda f, g: f(g.m, axis=1))
work(stats, "quantile", lambda f, g: f(g.m, g.share[:8], axis=0))
work(stats, "sigmaclip", lambda f, g: f(g.x, 1.5, 1.5))
work(stats, "circmean circstd circvar", lambda f, g: f(g.angles))
work(
    stats,
    "directional_stats",
    lambda f, g: fields(f(g.vectors), "mean_direction mean_resultant_length"),
)
work(stats, "entropy", lambda f, g: f(g.positive, g.others))
work(stats, "differential_entropy", lambda f, g: f(g.x))
work(stats, "boxcox_llf yeojohnson_llf", lambda f, g: f(0.7, g.positive))
work(
    stats,
    "ttest_ind mannwhitneyu wilcoxon ansari mood brunnermunzel epps_singleton_2samp",
    lambda f, g: f(g.x, g.y),
)
work(stats, "ttest_rel chatterjeexi", lambda f, g: f(g.x, g.y))
work(stats, "pearsonr spearmanrho", lambda f, g: fields(f(g.x, g.y), "statistic pvalue"))
work(stats, "ttest_1samp", lambda f, g: f(g.x, 0.1))
work(stats, "ttest_ind_from_stats", lambda f, g: f(g.x, g.positive, 9, g.y, g.others, 7))
work(stats, "jarque_bera normaltest skewtest kurtosistest", lambda f, g: f(g.x))
work(
    stats,
    "f_oneway kruskal friedmanchisquare alexandergovern bartlett fligner levene",
    lambda f, g: fields(f(g.x, g.y, g.w), "statistic pvalue"),
)
work(stats, "chisquare power_divergence", lambda f, g: f(g.counts))
work(
    stats,
    "cramervonmises ks_1samp",
    lambda f, g: fields(f(g.x, special.ndtr), "statistic pvalue"),
)
work(stats, "cramervonmises_2samp", lambda f, g: fields(f(g.x, g.y), "statistic pvalue"))
work(stats, "combine_pvalues", lambda f, g: fields(f(g.share), "statistic pvalue"))
work(stats, "false_discovery_control", lambda f, g: f(g.share))


work(
    stats,
    "permutation_test",
    lambda f, g: fields(f((g.x, g.y), _mean_difference, n_resamples=99, rng=2), "statistic pvalue"),
)
work(
    stats,
    "bootstrap",
    lambda f, g: f((g.x,), _mean, n_resamples=99, rng=2, method="basic").confidence_interval,
)
work(
    stats,
    "monte_carlo_test",
    lambda f, g: fields(
        f(
            g.x,
            lambda size: g.array(np.random.default_rng(3).standard_normal(size)),
            _mean,
            n_resamples=99,
        ),
        "statistic pvalue",
    ),
)
work(
    stats,
    "power",
    lambda f, g: (
        f(
            lambda x, axis: stats.ttest_1samp(x, 0.0, axis=axis),
            lambda size: g.array(np.random.default_rng(4).normal(0.5, 1.0, size)),
            24,
            n_resamples=99,
        ).power
    ),
)

# -- signal -------------------------------------------------------------------------------------

_WINDOWS = (
    "barthann bartlett blackman blackmanharris bohman boxcar cosine flattop hamming hann "
    "lanczos nuttall parzen taylor triang tukey exponential"
)
work(signal.windows, _WINDOWS, lambda f, g: f(9, xp=g.xp, device=g.device))
work(
    signal.windows,
    "gaussian general_hamming kaiser",
    lambda f, g: f(9, 0.7, xp=g.xp, device=g.device),
)
work(signal.windows, "kaiser_bessel_derived", lambda f, g: f(10, 0.7, xp=g.xp, device=g.device))
work(signal.windows, "general_gaussian", lambda f, g: f(9, 1.5, 2.0, xp=g.xp, device=g.device))
work(signal.windows, "general_cosine", lambda f, g: f(9, g.taps))
work(signal.windows, "chebwin", lambda f, g: f(9, 60, xp=g.xp, device=g.device))
work(signal.windows, "get_window", lambda f, g: f(("kaiser", 3.0), 9, xp=g.xp, device=g.device))
work(signal, "get_window", lambda f, g: f("hann", 9, xp=g.xp, device=g.device))
work(signal, "convolve correlate fftconvolve oaconvolve", lambda f, g: f(g.wave, g.taps))
work(signal, "convolve2d correlate2d", lambda f, g: f(g.image, g.kernel))
work(signal, "choose_conv_method", lambda f, g: f(g.wave, g.taps))
work(signal, "deconvolve", lambda f, g: f(g.wave, g.taps))
work(signal, "lfilter filtfilt", lambda f, g: f(g.b, g.a, g.wave))
work(signal, "lfilter_zi", lambda f, g: f(g.b, g.a))
work(signal, "lfiltic", lambda f, g: f(g.b, g.a, g.taps[:2]))
work(signal, "sosfilt sosfiltfilt", lambda f, g: f(g.sos, g.wave))
work(signal, "sosfilt_zi sos2tf", lambda f, g: f(g.sos))
work(signal, "sos2zpk", lambda f, g: [g.xp.sort(g.xp.real(each)) for each in f(g.sos)[:2]])
work(signal, "tf2sos tf2zpk normalize bilinear", lambda f, g: f(g.b, g.a))
work(signal, "zpk2sos zpk2tf", lambda f, g: f(g.zeros, g.poles, 0.5))
work(signal, "bilinear_zpk", lambda f, g: f(g.zeros, g.poles, 0.5, 10.0))
work(signal, "lp2lp lp2hp lp2bp lp2bs", lambda f, g: f(g.b, g.a, 2.0))
work(signal, "lp2lp_zpk lp2hp_zpk lp2bp_zpk lp2bs_zpk", lambda f, g: f(g.zeros, g.poles, 0.5, 2.0))
work(signal, "freqz", lambda f, g: f(g.b, g.a, 16))
work(signal, "group_delay", lambda f, g: f((g.b, g.a), 16))
work(signal, "freqz_sos sosfreqz", lambda f, g: f(g.sos, 16))
work(signal, "freqz_zpk", lambda f, g: f(g.zeros, g.poles, 0.5, 16))
work(signal, "freqs", lambda f, g: f(g.b, g.a, g.positive))
work(signal, "freqs_zpk", lambda f, g: f(g.zeros, g.poles, 0.5, g.positive))
work(signal, "detrend hilbert envelope medfilt wiener cspline1d qspline1d", lambda f, g: f(g.wave))
work(signal, "cspline1d_eval qspline1d_eval", lambda f, g: f(g.wave, g.between))
work(signal, "hilbert2 medfilt2d", lambda f, g: f(g.image))
work(signal, "spline_filter", lambda f, g: f(g.photo))
work(signal, "order_filter", lambda f, g: f(g.image, g.kernel, 2))
work(signal, "resample", lambda f, g: f(g.wave, 48))
work(signal, "resample_poly", lambda f, g: f(g.wave, 3, 2))
work(signal, "upfirdn", lambda f, g: f(g.taps, g.wave, 3, 2))
work(signal, "savgol_filter", lambda f, g: f(g.wave, 7, 2))
work(signal, "savgol_coeffs", lambda f, g: f(7, 2, xp=g.xp, device=g.device))
work(signal, "vectorstrength", lambda f, g: f(g.angles, 2.0))
work(signal, "gauss_spline", lambda f, g: f(g.x, 3))
work(signal, "minimum_phase", lambda f, g: f(g.taps))
work(signal, "buttap besselap", lambda f, g: f(4, xp=g.xp, device=g.device))
work(signal, "cheb1ap cheb2ap", lambda f, g: f(4, 1.0, xp=g.xp, device=g.device))
work(signal, "ellipap", lambda f, g: f(4, 1.0, 40.0, xp=g.xp, device=g.device))
work(signal, "firwin", lambda f, g: f(9, g.array([0.2, 0.4])))
work(signal, "firwin2", lambda f, g: f(9, g.array([0.0, 0.5, 1.0]), g.array([1.0, 1.0, 0.0])))
work(signal, "firls", lambda f, g: f(9, g.bands, g.array([1.0, 1.0, 0.0, 0.0]), fs=1.0))
work(signal, "remez", lambda f, g: f(9, g.bands, g.array([1.0, 0.0]), fs=1.0))
work(signal, "butter bessel", lambda f, g: f(4, g.array(0.3)))
work(signal, "cheby1 cheby2", lambda f, g: f(4, 20.0, g.array(0.3)))
work(signal, "ellip", lambda f, g: f(4, 1.0, 40.0, g.array(0.3)))
work(
    signal,
    "buttord cheb1ord cheb2ord ellipord",
    lambda f, g: f(g.array(0.2), g.array(0.3), 1, 40),
)
work(signal, "iirfilter", lambda f, g: f(4, g.array([0.2, 0.5])))
work(signal, "iirdesign", lambda f, g: f(g.array(0.2), g.array(0.3), 1, 40))
work(signal, "iircomb iirnotch iirpeak", lambda f, g: f(0.25, 30.0, xp=g.xp))
work(signal, "bode", lambda f, g: f((g.b, g.a), g.positive))
work(signal, "place_poles", lambda f, g: f(g.matrix, g.inputs, g.array([-1.0, -2.0])).gain_matrix)
work(signal, "abcd_normalize", lambda f, g: f(g.matrix, g.inputs, g.matrix))
work(signal, "gammatone", lambda f, g: f(440.0, "iir", fs=16000, xp=g.xp))

# -- ndimage ------------------------------------------------------------------------------------

work(
    ndimage,
    "gaussian_filter gaussian_gradient_magnitude gaussian_laplace",
    lambda f, g: f(g.image, 1.2),
)
work(ndimage, "gaussian_filter1d", lambda f, g: f(g.image, 1.2))
work(
    ndimage,
    "fourier_gaussian fourier_uniform fourier_ellipsoid fourier_shift",
    lambda f, g: f(g.image, 1.2),
)
work(ndimage, "laplace prewitt sobel spline_filter spline_filter1d", lambda f, g: f(g.image))
work(
    ndimage,
    "maximum_filter minimum_filter median_filter uniform_filter maximum_filter1d"
    " minimum_filter1d uniform_filter1d grey_closing grey_dilation grey_erosion"
    " grey_opening black_tophat white_tophat morphological_gradient morphological_laplace",
    lambda f, g: f(g.image, 3),
)
work(ndimage, "rank_filter percentile_filter", lambda f, g: f(g.image, 2, size=3))
work(ndimage, "convolve correlate", lambda f, g: f(g.image, g.kernel))
work(ndimage, "convolve1d correlate1d", lambda f, g: f(g.image, g.taps))
work(ndimage, "generic_filter", lambda f, g: f(g.image, np.ptp, size=3))
work(ndimage, "generic_filter1d", lambda f, g: f(g.image, _neighbours, 3))
work(ndimage, "generic_gradient_magnitude", lambda f, g: f(g.image, ndimage.sobel))
work(ndimage, "generic_laplace", lambda f, g: f(g.image, _second_difference))
work(ndimage, "vectorized_filter", lambda f, g: f(g.image, g.xp.max, size=3))
work(
    ndimage,
    "binary_closing binary_dilation binary_erosion binary_opening binary_propagation"
    " binary_fill_holes binary_hit_or_miss",
    lambda f, g: f(g.mask, g.cross),
)
work(
    ndimage,
    "distance_transform_bf distance_transform_cdt distance_transform_edt",
    lambda f, g: f(g.mask),
)
work(ndimage, "iterate_structure", lambda f, g: f(g.cross, 2))
work(ndimage, "label find_objects", lambda f, g: f(g.spots))
work(ndimage, "value_indices", lambda f, g: list(f(g.spots).values()))
work(
    ndimage,
    "sum sum_labels mean median variance standard_deviation maximum minimum extrema"
    " center_of_mass maximum_position minimum_position",
    lambda f, g: f(g.image, g.regions),
)
work(ndimage, "histogram", lambda f, g: f(g.image, -2.0, 2.0, 5))
work(
    ndimage,
    "labeled_comprehension",
    lambda f, g: f(g.image, g.regions, g.array([1, 2, 3]), np.mean, float, 0.0),
)
work(ndimage, "watershed_ift", lambda f, g: f(g.array(DATA["image"] * 40 + 128, np.uint8), g.spots))
work(ndimage, "affine_transform", lambda f, g: f(g.image, g.array([[0.9, 0.1], [-0.1, 1.1]])))
work(ndimage, "geometric_transform", lambda f, g: f(g.image, lambda at: (at[0] - 0.5, at[1] * 0.9)))
work(
    ndimage,
    "map_coordinates",
    lambda f, g: f(g.image, g.array([[0.5, 2.0, 7.7], [1.0, 2.5, 8.1]])),
)
work(ndimage, "rotate shift zoom", lambda f, g: f(g.image, 1.5))


# -- cluster ------------------------------------------------------------------------------------

hierarchy = cluster.hierarchy
work(cluster.vq, "whiten", lambda f, g: f(g.points))
work(cluster.vq, "vq kmeans", lambda f, g: f(g.points, g.centres))
work(cluster.vq, "kmeans2", lambda f, g: f(g.points, g.centres, minit="matrix"))
work(
    hierarchy,
    "average centroid complete median single ward weighted linkage",
    lambda f, g: f(g.points),
)
work(
    hierarchy,
    "cophenet inconsistent maxdists leaves_list to_mlab_linkage",
    lambda f, g: f(g.tree),
)
work(hierarchy, "is_monotonic is_valid_linkage num_obs_linkage", lambda f, g: f(g.tree))
work(hierarchy, "from_mlab_linkage", lambda f, g: f(hierarchy.to_mlab_linkage(g.tree)))
work(hierarchy, "is_valid_im", lambda f, g: f(hierarchy.inconsistent(g.tree)))
work(hierarchy, "maxinconsts", lambda f, g: f(g.tree, hierarchy.inconsistent(g.tree)))
work(hierarchy, "maxRstat", lambda f, g: f(g.tree, hierarchy.inconsistent(g.tree), 2))
work(hierarchy, "fcluster", lambda f, g: f(g.tree, 3, "maxclust"))
work(hierarchy, "fclusterdata", lambda f, g: f(g.points, 3, "maxclust"))
work(hierarchy, "leaders", lambda f, g: f(g.tree, hierarchy.fcluster(g.tree, 3, "maxclust")))
work(hierarchy, "optimal_leaf_ordering", lambda f, g: f(g.tree, g.points))
work(hierarchy, "correspond", lambda f, g: f(g.tree, g.array(spatial.distance.pdist(_POINTS))))
work(hierarchy, "is_isomorphic", lambda f, g: f(g.array([0, 0, 1, 2]), g.array([5, 5, 3, 4])))
work(
    hierarchy,
    "dendrogram",
    lambda f, g: [f(g.tree, no_plot=True)[key] for key in ("leaves", "icoord")],
)
work(hierarchy, "to_tree", lambda f, g: f(g.tree).pre_order())

# -- numerical mathematics ----------------------------------------------------------------------

work(constants, "convert_temperature", lambda f, g: f(g.x, "C", "F"))
work(constants, "lambda2nu nu2lambda", lambda f, g: f(g.positive))
work(differentiate, "derivative", lambda f, g: fields(f(g.xp.sin, g.x), "df error nfev"))
work(differentiate, "jacobian", lambda f, g: f(optimize.rosen, g.m[:3, :]).df)
work(differentiate, "hessian", lambda f, g: f(optimize.rosen, g.m[:3, :]).ddf)
work(
    integrate,
    "trapezoid cumulative_trapezoid cumulative_simpson",
    lambda f, g: f(g.m, x=g.knots[:8]),
)
work(integrate, "romb", lambda f, g: f(g.image[:, :9]))
work(
    integrate,
    "cubature",
    lambda f, g: f(lambda x: g.xp.exp(-g.xp.sum(x**2, axis=-1)), g.low, g.high).estimate,
)
work(integrate, "tanhsinh", lambda f, g: f(lambda x: g.xp.exp(-(x**2)), g.low, g.high).integral)
work(integrate, "nsum", lambda f, g: f(lambda k: 1 / k**2, g.high, g.array(np.inf)).sum)
work(
    integrate,
    "qmc_quad",
    lambda f, g: (
        f(lambda x: g.xp.prod(x, axis=0), g.low, g.high, qrng=stats.qmc.Halton(2, rng=5)).integral
    ),
)
work(optimize, "rosen rosen_der", lambda f, g: f(g.m))
work(optimize, "rosen_hess", lambda f, g: f(g.x))
work(optimize, "rosen_hess_prod", lambda f, g: f(g.x, g.y))
work(
    optimize.elementwise,
    "find_root",
    lambda f, g: fields(f(lambda x: x**3 - 2, (g.low, g.high)), "x f_x success nfev"),
)
work(
    optimize.elementwise,
    "find_minimum",
    lambda f, g: fields(
        f(lambda x: (x - 1) ** 2, (g.low - 1, g.low + 0.5, g.high + 3)), "x f_x success"
    ),
)
work(
    optimize.elementwise,
    "bracket_root",
    lambda f, g: f(lambda x: x**3 - 40, g.low, g.high).bracket,
)
work(optimize.elementwise, "bracket_minimum", lambda f, g: f(lambda x: (x - 7) ** 2, g.low).bracket)
work(linalg, "block_diag", lambda f, g: f(g.m, g.kernel))
work(linalg, "fiedler", lambda f, g: f(g.x))
work(linalg, "orthogonal_procrustes", lambda f, g: f(g.m, g.n))

# -- spatial.transform --------------------------------------------------------------------------

Rotation = spatial.transform.Rotation
RigidTransform = spatial.transform.RigidTransform


def turns(g):
    """Return rotations, a stack of five."""
    return Rotation.from_quat(g.quaternions)


def moves(g):
    """Return rigid transforms, a stack of five."""
    return RigidTransform.from_components(g.vectors, turns(g))


CASES |= {
    f"spatial.transform.Rotation.{name}": call
    for name, call in {
        "from_quat": lambda g: turns(g).as_quat(),
        "from_matrix": lambda g: Rotation.from_matrix(turns(g).as_matrix()).as_quat(),
        "from_rotvec": lambda g: Rotation.from_rotvec(g.vectors).as_rotvec(),
        "from_euler": lambda g: Rotation.from_euler("xyz", g.vectors).as_euler("zyx", degrees=True),
        "from_mrp": lambda g: Rotation.from_mrp(g.vectors).as_mrp(),
        "as_davenport": lambda g: turns(g).as_davenport(g.array(np.eye(3)), "extrinsic"),
        "align_vectors": lambda g: Rotation.align_vectors(g.m[:5, :3], g.vectors)[0].as_quat(),
        "apply": lambda g: [turns(g).apply(g.vectors), turns(g).apply(g.vectors, inverse=True)],
        "approx_equal": lambda g: turns(g).approx_equal(turns(g).inv()),
        "concatenate": lambda g: Rotation.concatenate([turns(g), turns(g)[:2]]).as_quat(),
        "magnitude": lambda g: turns(g).magnitude(),
        "mean": lambda g: turns(g).mean().as_matrix(),
        "reduce": lambda g: turns(g).reduce(turns(g)[:2], turns(g)[3:]).as_quat(),
        "iteration": lambda g: [each.as_quat() for each in turns(g)],
        "product": lambda g: (turns(g) * turns(g).inv()[0]).as_matrix(),
        "power": lambda g: (turns(g) ** 2).as_matrix(),
        "slerp": lambda g: spatial.transform.Slerp(g.knots[:5], turns(g))(g.between[:2]).as_quat(),
    }.items()
}
CASES |= {
    f"spatial.transform.RigidTransform.{name}": call
    for name, call in {
        "from_components": lambda g: moves(g).as_components()[0],
        "from_matrix": lambda g: RigidTransform.from_matrix(moves(g).as_matrix()).as_matrix(),
        "from_rotation": lambda g: RigidTransform.from_rotation(turns(g)).as_matrix(),
        "from_translation": lambda g: RigidTransform.from_translation(g.vectors).as_matrix(),
        "from_exp_coords": lambda g: RigidTransform.from_exp_coords(g.m[:5, :6]).as_exp_coords(),
        "from_dual_quat": lambda g: RigidTransform.from_dual_quat(g.m[:5, :]).as_dual_quat(),
        "apply": lambda g: moves(g).apply(g.vectors),
        "concatenate": lambda g: RigidTransform.concatenate([moves(g), moves(g)[1:]]).as_matrix(),
        "inverse": lambda g: moves(g).inv().as_matrix(),
        "mean": lambda g: moves(g).mean().as_matrix(),
        "product": lambda g: (moves(g) * moves(g)[0]).as_matrix(),
        "power": lambda g: (moves(g) ** 3).as_matrix(),
    }.items()
}

# -- interpolate --------------------------------------------------------------------------------

work(
    interpolate,
    "Akima1DInterpolator CubicSpline PchipInterpolator make_interp_spline",
    lambda f, g: f(g.knots, g.values)(g.between),
)
work(interpolate, "CubicHermiteSpline", lambda f, g: f(g.knots, g.values, g.slopes)(g.between))
work(interpolate, "PPoly BPoly", lambda f, g: f(g.m[:, :4], g.knots[:5])(g.between[:3]))
work(interpolate, "BSpline", lambda f, g: f(g.knots, g.values[:7], 3)(g.between[:5]))
work(
    interpolate,
    "NdBSpline",
    lambda f, g: f((g.knots, g.knots), g.m[:6, :6], 4)(g.array([[2.1, 2.2], [2.4, 2.9]])),
)
work(
    interpolate,
    "RegularGridInterpolator",
    lambda f, g: f((g.knots[:6], g.knots[:8]), g.m)(g.array([[1.1, 1.2], [0.3, 2.9]])),
)
work(
    interpolate,
    "make_lsq_spline",
    lambda f, g: f(g.knots, g.values, g.array([0.0] * 4 + [2.5] + [5.0] * 4))(g.between),
)
work(interpolate, "make_smoothing_spline", lambda f, g: f(g.knots, g.values, lam=0.1)(g.between))
work(interpolate, "make_splrep", lambda f, g: f(g.knots, g.values, s=0.1)(g.between))
work(interpolate, "make_splprep", lambda f, g: f([g.values, g.slopes], s=0.1)[0](g.share))
work(interpolate, "RBFInterpolator", lambda f, g: f(g.points, g.x, kernel="linear")(g.centres))
work(interpolate, "generate_knots", lambda f, g: list(f(g.knots, g.values, s=0.1)))
