"""The devices of libraries: their names, what they take, and when a library is opened."""

import pickle
from functools import partial
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from scripts import run_script

import ggarray as xp
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.traits import q8_0
from ggarray._runtime import devices as runtime_devices
from ggarray._runtime.plugins import backend_devices
from ggarray.backends.blas import device as module, listing, registry
from ggarray.backends.blas.device import BlasDevice, BlasRegistry
from ggarray.backends.blas.discovery import Candidate, Libraries
from ggarray.backends.blas.library import UnusableLibraryError
from ggarray.backends.blas.vendors import BY_NAME, VENDORS, open_library
from ggarray.interface import DeviceType, Kernel, Op, Tensor

from .fake_blas import EVERYTHING, ILP64, MARKS, Books


@pytest.fixture
def device(fake):
    """The device of a library with 64-bit integers, open."""
    device = BlasDevice("blas:fake", "", partial(open_library, fake(*ILP64)))
    device.open()
    return device


# -- what a device takes ---------------------------------------------------------------------------


def tensor(*shape, dtype="f"):
    return Tensor(shape, np.dtype(dtype), (0,) * len(shape)).contiguous()


def node(m, n, k, dtype="f", *, bias=None, alpha=1, beta=0):
    operands = tensor(m, k, dtype=dtype), tensor(k, n, dtype=dtype)
    return Kernel(Op.MATMUL, operands, tensor(m, n, dtype=dtype), alpha, beta, bias)


def outer(m, n, k, dtype="f"):
    operands = tensor(m, k, dtype=dtype), tensor(n, k, dtype=dtype)
    return Kernel(Op.OUT_PROD, operands, tensor(m, n, dtype=dtype))


@pytest.mark.parametrize("dtype", "fdFD")
def test_products_of_what_libraries_compute(device, dtype):
    assert device.supports_op(node(512, 512, 512, dtype))
    assert device.supports_op(node(1, 1024, 1024, dtype))
    assert device.supports_op(outer(512, 512, 512, dtype))
    assert device.supports_op(outer(512, 512, 2, dtype))


@pytest.mark.parametrize("dtype", "fdFD")
def test_small_products_and_outer_products_of_vectors_are_left_to_the_cpu(device, dtype):
    assert not device.supports_op(node(4, 4, 4, dtype))
    assert not device.supports_op(node(0, 512, 512, dtype))
    assert not device.supports_op(outer(4, 4, 4, dtype))
    assert not device.supports_op(outer(512, 512, 1, dtype))


@pytest.mark.parametrize("dtype", ["i4", "i8", "?", "u1"])
def test_dtypes_that_libraries_do_not_know(device, dtype):
    assert not device.supports_op(node(512, 512, 512, dtype))


@pytest.mark.parametrize("dtype", ["f2", ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
@pytest.mark.parametrize("portable", [False, True])
def test_halves_are_taken_where_our_kernels_are_slow(device, monkeypatch, dtype, portable):
    monkeypatch.setattr(module, "_ours_are_portable", lambda: portable)
    bias = tensor(512, 512, dtype=dtype)
    assert device.supports_op(node(512, 512, 512, dtype)) == portable
    assert not device.supports_op(node(4, 4, 4, dtype))
    assert not device.supports_op(node(512, 512, 512, dtype, alpha=0.5))
    assert not device.supports_op(node(512, 512, 512, dtype, bias=bias, beta=1))


def test_copies_are_not_taken(device):
    copy = Kernel(Op.COPY, (tensor(512, 512),), tensor(512, 512))
    assert not device.supports_op(copy)


def test_results_of_another_dtype_are_refused(device):
    plain, wide = node(512, 512, 512), node(512, 512, 512, "d")
    for char in "dFDe":
        other = plain.out._replace(dtype=np.dtype(char))
        assert not device.supports_op(Kernel(Op.MATMUL, plain.operands, other))
    mixed = (plain.operands[0], wide.operands[1])
    for operands in (mixed, mixed[::-1]):
        for out in (plain.out, wide.out):
            assert not device.supports_op(Kernel(Op.MATMUL, operands, out))


@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("size", [4, 512])
def test_epilogues_are_taken_where_the_product_is(device, dtype, size):
    bias = tensor(1, size, dtype=dtype)
    for more in (
        {"alpha": 0.5},
        {"bias": bias, "beta": 1},
        {"alpha": -1, "bias": bias, "beta": -1},
    ):
        kernel = node(size, size, size, dtype, **more)
        assert device.supports_op(kernel) == device.supports_op(node(size, size, size, dtype))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("portable", [False, True])
def test_quantized_weights_need_a_batch(device, monkeypatch, axis, portable):
    monkeypatch.setattr(module, "_ours_are_portable", lambda: portable)
    weights = Tensor((1024, 1024), q8_0, (0, 0), axis).contiguous()
    blocks = Blocks.from_bytes(bytes(1024 * 34 * 32), q8_0, (1024, 1024))
    for rows, supported in ((1, False), (512, True)):
        x, turned = tensor(rows, 1024), tensor(1024, rows)
        for each in (weights, blocks if axis else blocks.mT):
            assert device.supports_op(Kernel(Op.MATMUL, (x, each), x)) == supported
            assert device.supports_op(Kernel(Op.MATMUL, (each, turned), turned)) == supported
        wide = x._replace(dtype=np.dtype("d")).contiguous()
        assert not device.supports_op(Kernel(Op.MATMUL, (x, weights), wide))
    small = Tensor((32, 32), q8_0, (0, 0), axis).contiguous()
    assert not device.supports_op(Kernel(Op.MATMUL, (tensor(512, 32), small), tensor(512, 32)))


@pytest.mark.parametrize("integers", [(), ILP64], ids=["LP64", "ILP64"])
def test_narrow_libraries_are_not_asked_for_long_operands(fake, integers):
    device = BlasDevice("blas:fake", "", partial(open_library, fake(*integers)))
    wide = integers == ILP64
    assert device.supports_op(node(1 << 20, 2, 1024))
    assert device.supports_op(node(1 << 31, 2, 1024)) == wide
    assert device.supports_op(node(2, 1 << 31, 1024)) == wide
    assert device.supports_op(node(1 << 16, 2, 1 << 16)) == wide  # so many elements
    near, out = tensor(1024, 1024), tensor(1024, 1024)
    for strides in ((1 << 34, 4), (4, 1 << 34), (-(1 << 34), 4)):
        far = Tensor((1024, 1024), np.dtype("f"), strides)
        assert device.supports_op(Kernel(Op.MATMUL, (far, near), out)) == wide
        assert device.supports_op(Kernel(Op.MATMUL, (near, far), out)) == wide
        assert device.supports_op(Kernel(Op.MATMUL, (near, near), far)) == wide


# -- opening ---------------------------------------------------------------------------------------


class Opening:
    """Opens a library, and counts how often."""

    def __init__(self, path):
        self.path = path
        self.times = 0

    def __call__(self):
        self.times += 1
        return open_library(self.path)


def test_a_library_is_opened_when_its_device_is_used(fake):
    path = fake(marks=MARKS["openblas"])
    opening = Opening(path)
    device = BlasDevice("blas:fake", "not opened", opening)
    assert device.type is DeviceType.ACCEL
    free, total = device.memory()
    assert 0 < free <= total
    assert not device.supports_op(node(4, 4, 4))
    assert (opening.times, device.description) == (0, "not opened")
    assert device.supports_op(node(512, 512, 512))
    assert device.description == f"OpenBLAS 0.3.99 (Penryn, LP64, {path})"
    assert device.init_backend().name == "blas:fake"
    device.open()
    assert opening.times == 1


def test_a_library_that_cannot_be_opened_is_tried_again(fake):
    opening = Opening(fake("-DGEMM_FACTOR=2"))
    device = BlasDevice("blas:fake", "", opening)
    for use in (device.open, device.init_backend, lambda: device.supports_op(node(512, 512, 512))):
        with pytest.raises(UnusableLibraryError, match="wrong"):
            use()
    assert opening.times == 3


@pytest.mark.parametrize(("best", "slow"), [("AVX512", True), ("SSE3", False)])
def test_a_warning_where_kernels_are_not_made_for_the_processor(fake, monkeypatch, best, slow):
    monkeypatch.setattr(listing, "processor_features", lambda: {best: True})
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    path = fake(marks=MARKS["openblas"])
    name = f"blas:{path}"
    if slow:
        with pytest.warns(xp.Warning, match="kernels are those for Penryn") as caught:
            xp.Device(name)
        assert [str(each.message).startswith(f"{name}: ") for each in caught] == [True]
        assert caught[0].filename == __file__
    xp.Device(name)
    xp.asarray([1.0], device=name)


# -- the registry ----------------------------------------------------------------------------------


class Found(Libraries):
    """Libraries that were found."""

    def __init__(self, default=None, **paths):
        super().__init__({})
        self.default = default
        self.candidates = {
            name: [Candidate(BY_NAME[name], Path(path))] for name, path in paths.items()
        }
        self.opened = []

    def open_default(self):
        return self.default

    def open_vendor(self, name):
        return self.open(self.related(name)[0].path)

    def open(self, path, mapped=False):
        self.opened.append(path)
        return open_library(path)


def devices(found):
    blas = BlasRegistry()
    blas.libraries = found
    return {device.name: device for device in blas.devices()}


def test_no_devices_without_a_library():
    assert devices(Found()) == {}


def test_devices_by_vendor(fake):
    default, mkl, blis = (fake(marks=MARKS[name]) for name in ("openblas", "mkl", "blis"))
    found = Found(open_library(default), mkl=mkl, openblas="/another.so", blis=blis)
    there = devices(found)
    assert list(there) == ["blas", "blas:openblas", "blas:mkl", "blas:blis"]
    for name in ("blas", "blas:openblas"):
        assert there[name].description == f"OpenBLAS 0.3.99 (Penryn, LP64, {default})"
        assert there[name].library is found.default
    assert str(mkl) in there["blas:mkl"].description
    assert "not opened" in there["blas:mkl"].description
    assert found.opened == []
    assert there["blas:mkl"].library.vendor.name == "mkl"
    assert found.opened == [mkl]
    for name, device in there.items():
        assert device.init_backend().name == name
    assert found.opened == [mkl, blis]


def test_the_default_may_be_of_a_vendor_that_was_not_found(fake):
    there = devices(Found(open_library(fake(marks=MARKS["nvpl"]))))
    assert list(there) == ["blas", "blas:nvpl"]


def test_devices_of_this_machine():
    there = registry.devices()
    assert [device.name for device in there[:2]] == ["blas", "blas:openblas"]
    assert len({device.name for device in there}) == len(there)
    for device in there[:2]:
        assert device.type is DeviceType.ACCEL
        assert device.description.startswith("OpenBLAS ")
        assert device.init_backend().name == device.name


@pytest.mark.parametrize("vendor", [vendor for vendor in VENDORS if vendor.name != "openblas"])
def test_vendors_that_were_not_found_can_be_had(vendor):
    blas = BlasRegistry()
    blas.libraries = Found()
    with pytest.raises(UnusableLibraryError) as caught:
        blas.find_device(f"blas:{vendor.name}")
    assert str(caught.value) == f"no {vendor.title} was found: {vendor.how_to_get}"


@pytest.mark.parametrize("what", ["OpenBLAS", "nonsense", "./lib.so", "lib.so", "~/lib.so", ""])
def test_what_is_neither_a_vendor_nor_a_path(what):
    with pytest.raises(UnusableLibraryError) as caught:
        registry.find_device(f"blas:{what}")
    assert repr(what) in str(caught.value)
    for vendor in VENDORS:
        assert vendor.name in str(caught.value)


def test_a_vendor_whose_library_has_the_name_of_another(fake):
    blas = BlasRegistry()
    blas.libraries = Found(blis=fake(marks=MARKS["aocl"]))
    device = blas.find_device("blas:aocl")
    device.open()
    assert device.library.vendor.name == "aocl"


def test_without_any_library_the_device_blas_tells_how_to_get_one():
    blas = BlasRegistry()
    blas.libraries = Found()
    with pytest.raises(UnusableLibraryError, match="no library was found") as caught:
        blas.find_device("blas")
    assert BY_NAME["openblas"].how_to_get in str(caught.value)


def test_procedures(device):
    backend = device.init_backend()
    registry.get_proc_address("set_n_threads")(backend, 3)
    assert backend.n_threads == 3
    assert registry.get_proc_address("no such") is None


def test_the_report_is_of_this_registrys_libraries(monkeypatch):
    blas = BlasRegistry()
    blas.libraries = object()
    monkeypatch.setattr(listing, "lines", lambda libraries: iter([libraries]))
    assert list(blas.report()) == [blas.libraries]


# -- programs --------------------------------------------------------------------------------------


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def computes(device):
    """Check a product that is worth a call of a library."""
    x = numbers(64, 64)
    y = xp.asarray(x, device=device)
    np.testing.assert_allclose(np.asarray(y @ y), x.astype("d") @ x, rtol=0, atol=1e-3)


@pytest.fixture
def process(monkeypatch):
    """Let a test set the process's default device."""
    monkeypatch.setattr(runtime_devices, "_process", xp.Device("cpu"))


@pytest.fixture
def named(fake):
    """The name of the device of a library, and its books; it has not been named before."""
    path = fake(*EVERYTHING, *ILP64, marks=MARKS["blis"])
    books = Books(path)
    return f"blas:{path}", books


def test_a_library_by_its_path(named):
    name, books = named
    assert name not in xp.devices()
    device = xp.Device(name)
    assert xp.Device(name) is device
    assert device == name
    assert device in xp.devices()
    assert pickle.loads(pickle.dumps(device)) is device
    books.gemm = 0
    computes(name)
    assert books.gemm == 1
    assert backend_devices()[name].description == f"BLIS 9.1 (skx, ILP64, {name[5:]})"


def test_a_library_named_where_an_array_is_made(named):
    name, books = named
    computes(name)
    assert xp.asarray(1.0, device=name).device is xp.Device(name)
    assert books.gemm > 0


@pytest.mark.usefixtures("process")
def test_a_library_chosen_while_the_program_runs(named):
    name, books = named
    before = xp.asarray(numbers(64, 64))
    with xp.default_device(name):
        assert xp.ones(2).device == name
    assert xp.ones(2).device == "cpu"
    xp.set_default_device(name)
    assert xp.get_default_device() is xp.Device(name)
    after = xp.asarray(numbers(64, 64, seed=1))
    assert (before.device, after.device) == ("cpu", name)
    books.gemm = 0
    product = before @ after
    assert product.device == name
    expected = np.asarray(before).astype("d") @ np.asarray(after)
    np.testing.assert_allclose(np.asarray(product), expected, rtol=0, atol=1e-3)
    assert books.gemm == 1


def test_libraries_do_not_mix_but_with_what_is_less_specific(named, fake):
    name, other = named[0], f"blas:{fake()}"
    x, y = (xp.asarray(numbers(64, 64), device=each) for each in (name, other))
    with pytest.raises(ValueError, match="do not mix"):
        x @ y
    assert (x @ y.to_device(name)).device == name
    for less in ("cpu", "blas"):
        assert (x @ y.to_device(less)).device == name


def test_a_library_by_another_path_is_another_device(named):
    name, _ = named
    path = Path(name[5:])
    link = path.with_name("link.so")
    link.symlink_to(path)
    assert xp.Device(f"blas:{link}") != xp.Device(name)
    computes(f"blas:{link}")


BROKEN = {
    "crashes": ("-DWHEN_OPENED=abort()", "SIGABRT"),
    "wrong": ("-DGEMM_FACTOR=2", "computes wrong products"),
    "no BLAS": ("-DWITHOUT_GEMM", "has no cblas_sgemm"),
    "exits": ('-DWHEN_OPENED=fputs("no licence",stderr),exit(3)', "no licence"),
}


@pytest.mark.usefixtures("process")
@pytest.mark.parametrize("fault", BROKEN)
def test_a_library_that_cannot_be_used(fake, named, fault):
    option, reason = BROKEN[fault]
    path = fake(option)
    name = f"blas:{path}"
    for use in (
        xp.Device,
        xp.set_default_device,
        lambda name: xp.asarray(1.0, device=name),
        lambda name: xp.ones(2).to_device(name),
        lambda name: xp.default_device(name).__enter__(),
    ):
        with pytest.raises(ValueError, match=f"device '{name}' cannot be used") as caught:
            use(name)
        assert reason in str(caught.value)
        assert str(path) in str(caught.value).partition("cannot be used")[2]
        assert name not in xp.devices()
        assert xp.get_default_device() == "cpu"
    computes(named[0])
    computes("blas")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("blas:/no/such/lib.so", "No such file"),
        ("blas:/", "/"),
        (f"blas:/{'long' * 100}", "long"),
        ("blas:lib.so", "absolute path"),
        ("blas:nonsense", "openblas"),
        ("blas:", "absolute path"),
        ("blas:armpl", BY_NAME["armpl"].how_to_get),
    ],
)
def test_names_of_nothing(name, reason):
    with pytest.raises(ValueError, match="device") as caught:
        xp.Device(name)
    assert reason in str(caught.value)
    computes("blas")


# -- processes whose libraries are others ----------------------------------------------------------


@pytest.fixture
def lib(compile_blas, machine):
    """A folder of libraries; that of Arm PL cannot be used, and hardly any machine has another."""
    lib = machine / "lib"
    for name, marks, *options in (
        ("libblis.so.4", "blis"),
        ("libarmpl.so", "armpl", "-DGEMM_FACTOR=2"),
        ("libnvpl_blas_lp64_seq.so.0", "nvpl"),
    ):
        compile_blas(lib / name, *options, marks=MARKS[marks])
    return lib


def test_libraries_are_opened_when_they_are_named_or_used(lib):
    run_script(
        """
        import numpy as np
        import ggarray as xp

        def opened(name):
            return name in open("/proc/self/maps").read()

        names = ["blas", "blas:openblas", "blas:blis", "blas:armpl", "blas:nvpl"]
        found = xp.devices()
        assert set(names) <= set(found), found
        x = xp.asarray(np.eye(64), device="blas")
        assert (np.asarray(x @ x) == np.eye(64)).all()
        assert not any(map(opened, ("libblis", "libarmpl", "libnvpl")))
        xp.Device("blas:blis")
        assert opened("libblis")
        assert not any(map(opened, ("libarmpl", "libnvpl")))
        listed = next(device for device in found if device == "blas:nvpl")
        x = xp.asarray(np.eye(64), device=listed)
        assert (np.asarray(x @ x) == np.eye(64)).all()
        assert opened("libnvpl")
        """,
        LD_LIBRARY_PATH=str(lib),
    )


def test_a_listed_library_that_cannot_be_used(lib):
    """The device is there, as its file is; what is asked of it fails, and nothing else does."""
    run_script(
        f"""
        import numpy as np
        import ggarray as xp

        listed = next(device for device in xp.devices() if device == "blas:armpl")
        for use in (lambda: xp.Device("blas:armpl"), lambda: xp.ones(2, device=listed)):
            try:
                use()
            except ValueError as error:
                assert "{lib}/libarmpl.so computes wrong products" in str(error), error
            else:
                raise AssertionError
        x = xp.asarray(np.eye(64), device="blas:blis")
        assert (np.asarray(x @ x) == np.eye(64)).all()
        """,
        LD_LIBRARY_PATH=str(lib),
    )


CHOSEN = """
    import numpy as np
    import ggarray as xp

    x = xp.asarray(np.eye(64))
    assert x.device == "blas"
    assert (np.asarray(x @ x) == np.eye(64)).all()
    assert "{file}" in open("/proc/self/maps").read()
    assert "blas:{vendor}" in xp.devices()
    assert xp.Device("blas:{vendor}") == "blas:{vendor}"
"""


@pytest.mark.parametrize("by", ["path", "vendor"])
def test_the_environment_chooses_the_library(lib, by):
    path = lib / "libblis.so.4"
    run_script(
        CHOSEN.format(file=path, vendor="blis"),
        LD_LIBRARY_PATH=str(lib),
        GGARRAY_BLAS_LIBRARY=str(path) if by == "path" else "blis",
    )


def test_the_environment_names_a_device(lib):
    run_script(
        """
        import ggarray as xp

        assert xp.ones(2).device == "blas:{path}"
        assert "{path}" in open("/proc/self/maps").read()
        """.format(path=lib / "libblis.so.4"),
        GGARRAY_DEVICE=f"blas:{lib}/libblis.so.4",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{lib}/libarmpl.so", "computes wrong products"),
        ("armpl", "computes wrong products"),
        ("/no/such/lib.so", "No such file"),
        ("accelerate", "blis"),
        ("nonsense", "blis"),
        ("libblis.so.4", "absolute path"),
    ],
)
def test_what_the_environment_names_has_to_be_usable(lib, text, reason):
    text = text.format(lib=lib)
    run_script(
        f"""
        import ggarray as xp

        for use in (xp.devices, lambda: xp.ones(2)):
            try:
                use()
            except ValueError as error:
                assert "GGARRAY_BLAS_LIBRARY" in str(error), error
                assert "{reason}" in str(error), error
                assert "{text}" in str(error), error
            else:
                raise AssertionError
        """,
        LD_LIBRARY_PATH=str(lib),
        GGARRAY_BLAS_LIBRARY=text,
    )


def test_the_configuration_tells_of_libraries(lib):
    told = run_script(
        """
        import ggarray as xp

        xp.Device("blas:blis")
        xp.show_config()
        """,
        LD_LIBRARY_PATH=str(lib),
    )
    (blis,) = (line for line in told.splitlines() if line.endswith(f"{lib}/libblis.so.4"))
    assert "BLIS 9.1 skx" in blis
    assert blis.split()[:2] == ["*", "blas:blis"]
    (nvpl,) = (
        line for line in told.splitlines() if line.endswith(f"{lib}/libnvpl_blas_lp64_seq.so.0")
    )
    assert nvpl.split()[:2] == ["blas:nvpl", "NVPL"]
    assert f"of no use: {lib}/libarmpl.so computes wrong products" in told
    assert f"no NVHPC found: {BY_NAME['nvhpc'].how_to_get}" in told
