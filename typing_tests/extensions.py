"""Users' code: linear algebra, Fourier transforms, and what the namespace says of itself."""

from typing import Any, assert_type

import numpy as np

import ggarray as xp
import ggarray.fft as fft
from ggarray import Array, linalg


def results_have_named_fields(x: Array) -> None:
    values, vectors = linalg.eigh(x)
    assert_type(values, Array)
    assert_type(vectors, Array)
    assert_type(linalg.eigh(x).eigenvalues, Array)
    assert_type(linalg.eig(x).eigenvectors, Array)
    assert_type(linalg.qr(x, mode="complete").Q, Array)
    assert_type(linalg.qr(x).R, Array)
    assert_type(linalg.slogdet(x).sign, Array)
    assert_type(linalg.slogdet(x).logabsdet, Array)
    u, s, vh = linalg.svd(x, full_matrices=False)
    assert_type((u, s, vh), tuple[Array, Array, Array])
    assert_type(linalg.svd(x).Vh, Array)


def linear_algebra(x: Array) -> None:
    assert_type(linalg.cholesky(x, upper=True), Array)
    assert_type(linalg.cross(x, x), Array)
    assert_type(linalg.det(x), Array)
    assert_type(linalg.diagonal(x, offset=1), Array)
    assert_type(linalg.eigvals(x), Array)
    assert_type(linalg.eigvalsh(x), Array)
    assert_type(linalg.inv(x), Array)
    assert_type(linalg.matmul(x, x), Array)
    assert_type(linalg.matrix_norm(x, ord="nuc"), Array)
    assert_type(linalg.matrix_norm(x, ord=-xp.inf, keepdims=True), Array)
    assert_type(linalg.matrix_power(x, 3), Array)
    assert_type(linalg.matrix_rank(x, rtol=1e-6), Array)
    assert_type(linalg.matrix_transpose(x), Array)
    assert_type(linalg.outer(x, x), Array)
    assert_type(linalg.pinv(x, rtol=x), Array)
    assert_type(linalg.solve(x, x), Array)
    assert_type(linalg.svdvals(x), Array)
    assert_type(linalg.tensordot(x, x, axes=1), Array)
    assert_type(linalg.trace(x, dtype=xp.float64), Array)
    assert_type(linalg.vecdot(x, x), Array)
    assert_type(linalg.vector_norm(x, axis=(0, 1), ord=1), Array)


def fourier_transforms(x: Array) -> None:
    assert_type(fft.fft(x, n=8, axis=0, norm="ortho"), Array)
    assert_type(fft.ifft(x), Array)
    assert_type(fft.rfft(x), Array)
    assert_type(fft.irfft(x, n=7), Array)
    assert_type(fft.hfft(x), Array)
    assert_type(fft.ihfft(x), Array)
    assert_type(fft.fftn(x, s=(4, 4), axes=(0, 1)), Array)
    assert_type(fft.ifftn(x), Array)
    assert_type(fft.rfftn(x), Array)
    assert_type(fft.irfftn(x), Array)
    assert_type(fft.fftfreq(8, d=0.5, dtype=xp.float32, device="cpu"), Array)
    assert_type(fft.rfftfreq(8), Array)
    assert_type(fft.fftshift(x, axes=0), Array)
    assert_type(xp.fft.ifftshift(x), Array)


def inspection() -> None:
    info = xp.__array_namespace_info__()
    assert_type(info.capabilities(), dict[str, Any])
    assert_type(info.default_device(), xp.Device)
    assert_type(info.default_dtypes(device="cpu")["integral"], np.dtype[Any])
    assert_type(info.devices(), tuple[xp.Device, ...])
    assert_type(info.dtypes(kind=("bool", "integral")), dict[str, np.dtype[Any]])
    assert_type(xp.__array_api_version__, str)
    assert_type(xp.__version__, str)
