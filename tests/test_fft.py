"""Fourier transforms against NumPy's in double precision."""

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from values import check, numbers, zeros_q8_0

import ggarray as xp
from ggarray import fft

bfloat16 = np.dtype(ml_dtypes.bfloat16)
NORMS = ["backward", "ortho", "forward"]
TO_COMPLEX = ["fft", "ifft", "fftn", "ifftn"]
FROM_REAL = ["rfft", "ihfft", "rfftn"]
TO_REAL = ["irfft", "hfft", "irfftn"]
COMPLEX_OF = {np.float32: np.complex64, np.float64: np.complex128}
REAL_OF = {np.complex64: np.float32, np.complex128: np.float64}
SAME = {np.complex64: np.complex64, np.complex128: np.complex128}
CASES = [
    (name, dtype, results[dtype])
    for names, results in (
        (TO_COMPLEX, SAME),
        (TO_COMPLEX, COMPLEX_OF),
        (FROM_REAL, COMPLEX_OF),
        (TO_REAL, REAL_OF),
    )
    for name in names
    for dtype in results
]


def on_cpu(value, dtype=None):
    return xp.asarray(np.asarray(value, dtype), device="cpu")


def tolerance(dtype):
    return 1e-5 if np.dtype(dtype).itemsize <= 8 and dtype != np.float64 else 1e-13


def wide(x):
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


@pytest.mark.parametrize(("name", "dtype", "result_dtype"), CASES)
@pytest.mark.parametrize("norm", NORMS)
def test_transforms_are_those_of_numpy_in_the_precision_of_the_operand(
    name, dtype, result_dtype, norm
):
    x = numbers((5, 6, 4), dtype)
    options = [
        {"s": (4, 7), "axes": (0, 1)},
        {"axes": (-1, 0)},
        {"s": (3, 8, 5), "axes": (0, 1, 2)},
    ]
    if not name.endswith("n"):
        options = [{}, {"n": 3}, {"n": 9, "axis": 0}, {"axis": -2}]
    for each in options:
        expected = getattr(np.fft, name)(wide(x), norm=norm, **each)
        result = getattr(fft, name)(on_cpu(x), norm=norm, **each)
        eps = tolerance(result_dtype)
        check(result, expected, result_dtype, eps, eps * np.abs(expected).max())


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_all_axes_are_transformed_by_default(name):
    x = numbers((3, 4, 5), np.float64)
    expected = getattr(np.fft, name)(x, axes=(0, 1, 2))
    check(getattr(fft, name)(on_cpu(x)), expected, rtol=1e-12, atol=1e-12)
    last = getattr(np.fft, name)(x, s=(2, 8), axes=(1, 2))
    check(getattr(fft, name)(on_cpu(x), s=(2, 8)), last, rtol=1e-12, atol=1e-12)


def test_minus_one_in_s_takes_the_axis_as_it_is():
    x = numbers((3, 4), np.complex128)
    expected = np.fft.fft2(x, s=(3, 2))
    check(fft.fftn(on_cpu(x), s=(-1, 2), axes=(0, 1)), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16], ids=str)
def test_half_floats_are_transformed_in_single_precision(dtype):
    x = numbers(8, dtype)
    exact = np.fft.rfft(wide(x))
    check(fft.rfft(on_cpu(x)), exact, np.complex64, 1e-5, 1e-5)
    back = np.fft.irfft(wide(x))
    check(fft.irfft(on_cpu(x)), back, dtype, float(xp.finfo(dtype).eps), 1e-6)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.bool_])
def test_integers_are_transformed_in_double_precision(dtype):
    x = numbers(8, dtype)
    check(fft.fft(on_cpu(x)), np.fft.fft(wide(x)), np.complex128, 1e-13, 1e-13)


@pytest.mark.parametrize("name", FROM_REAL)
def test_real_transforms_refuse_complex_numbers(name):
    with pytest.raises(TypeError, match="real"):
        getattr(fft, name)(on_cpu(np.ones(4, np.complex64)))


@pytest.mark.parametrize("name", [*TO_COMPLEX, *FROM_REAL, *TO_REAL])
def test_transforms_raise(name):
    function = getattr(fft, name)
    many = name.endswith("n")
    x = on_cpu(np.ones((4, 4)))
    with pytest.raises(ValueError, match="out of bounds"):
        function(x, **({"axes": (2,)} if many else {"axis": 2}))
    with pytest.raises(ValueError, match=r"at least one axis|out of bounds"):
        function(on_cpu(1.0))
    with pytest.raises(ValueError, match="norm"):
        function(x, norm="half")
    with pytest.raises(ValueError, match=r"number of data points|at least one element"):
        function(x, **({"s": (0,), "axes": (0,)} if many else {"n": 0}))
    with pytest.raises(TypeError, match="dequantize"):
        function(zeros_q8_0((2, 32)))
    with pytest.raises(TypeError, match="Array is wanted"):
        function(np.ones(4))


def test_axes_of_fftn_are_different_and_as_many_as_s():
    x = on_cpu(np.ones((4, 4)))
    for options in ({"axes": (0, 0)}, {"s": (2,), "axes": (0, 1)}, {"s": (2, 2, 2)}, {"axes": ()}):
        with pytest.raises(ValueError, match=r"repeated|length|out of bounds|at least one axis"):
            fft.fftn(x, **options)


@pytest.mark.parametrize("n", [1, 4, 5])
@pytest.mark.parametrize("dtype", [None, np.float32, np.float64])
def test_frequencies(n, dtype):
    steps = np.arange(n)
    steps = np.where(steps < (n + 1) // 2, steps, steps - n)
    check(fft.fftfreq(n, device="cpu", dtype=dtype), steps / (n * 1.0), dtype or np.float64, 1e-7)
    half = np.arange(n // 2 + 1) / (n * 0.5)
    check(fft.rfftfreq(n, d=0.5, device="cpu", dtype=dtype), half, dtype or np.float64, 1e-7)


@pytest.mark.parametrize("function", [fft.fftfreq, fft.rfftfreq])
def test_frequencies_raise_and_take_the_default_device(function):
    for n in (0, -1):
        with pytest.raises(ValueError, match="at least one element"):
            function(n)
    for dtype in (np.int64, np.complex128):
        with pytest.raises(TypeError, match="real floating"):
            function(4, dtype=dtype)
    with pytest.raises(ValueError, match="unknown device"):
        function(4, device="nowhere")
    with xp.default_device("cpu"):
        assert function(4).device == "cpu"


@pytest.mark.parametrize("axes", [None, 0, -1, (0, 1), (1,)])
@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int8, bfloat16], ids=str)
def test_shifts_are_those_of_numpy(axes, dtype):
    x = numbers((4, 5), dtype)
    shifted = fft.fftshift(on_cpu(x), axes=axes)
    check(shifted, np.fft.fftshift(x, axes))
    check(fft.ifftshift(shifted, axes=axes), x)


def test_results_are_on_the_device_of_the_operand(device):
    x = xp.asarray(np.ones((4, 4)), device=device)
    for name in fft.__all__:
        if not name.endswith("freq"):
            assert getattr(fft, name)(x).device == device, name


def test_the_number_of_threads_reaches_scipy(monkeypatch):
    import scipy.fft

    seen = []

    def transform(x, *arguments, workers):
        seen.append(workers)
        return x

    monkeypatch.setattr(scipy.fft, "fft", transform)
    monkeypatch.setattr(scipy.fft, "fftn", transform)
    with xp.num_threads(3):
        fft.fft(on_cpu([1.0]))
        fft.fftn(on_cpu([1.0]))
    assert seen == [3, 3]


def test_scipy_is_imported_by_the_first_transform():
    program = (
        "import sys, ggarray.fft as fft, ggarray as xp\n"
        "x = xp.asarray([1.0], device='cpu')\n"
        "assert 'scipy.fft' not in sys.modules\n"
        "fft.fft(x)\n"
        "assert 'scipy.fft' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_functions_carry_their_names_and_describe_their_operand():
    assert fft.irfftn.__name__ == "irfftn"
    for name in fft.__all__:
        assert getattr(fft, name).__module__ == "ggarray.fft"
        assert getattr(fft, name).__doc__.count("Parameters\n") == 1, name
