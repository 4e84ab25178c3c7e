"""The test of backends: right ones pass, faults are seen, and the manual's example is right."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from doubles import NumpyBackend, NumpyDevice
from scripts import TESTS, install, run_script

from conformance.backend.cases import CASES, decoded
from conformance.backend.computing import check_case
from ggarray._quantized.blocks import Blocks
from ggarray._quantized.reference import FROM_FLOAT
from ggarray.interface import Op, Status

ROOT = Path(__file__).parents[1]
BY_NAME = {str(case): case for case in CASES}


def do_nothing(kernel, before, n_threads):
    return Status.SUCCESS


class SpoiledBackend(NumpyBackend):
    """Computes as it should; then `spoil` does to each kernel what it likes."""

    def __init__(self, spoil):
        super().__init__("spoiled")
        self.spoil = spoil

    def graph_compute(self, graph):
        for kernel in graph:
            before = (bytes_of(kernel.out) if kernel.op is Op.COPY else kernel.out).copy()
            with np.errstate(all="ignore"):
                if kernel.op is Op.COPY:
                    copy(*kernel.operands, kernel.out)
                else:
                    super().graph_compute((kernel,))
                status = self.spoil(kernel, before, self.n_threads)
            if status:
                return status
        return Status.SUCCESS


class SpoiledDevice(NumpyDevice):
    """Says it computes everything."""

    def __init__(self, spoil):
        super().__init__("spoiled")
        self.backend = SpoiledBackend(spoil)

    def supports_op(self, node):
        return node.op is Op.COPY or node.plain


def check(spoil, name, nmse=0.0):
    """Try a case on a device with a fault; return whether that took it."""
    taken = check_case(
        SpoiledDevice(spoil), SpoiledDevice.init_backend, BY_NAME[name], 3, bool, nmse
    )
    return taken > 0


def bytes_of(out):
    """Return blocks as bytes that can be written; an array as it is."""
    if not isinstance(out, Blocks):
        return out
    view = out.data.view()
    view.flags.writeable = True
    return view


def copy(x, out):
    if isinstance(x, Blocks):
        out[...] = decoded(x)
    else:
        rows = FROM_FLOAT[out.dtype](x.reshape(-1, out.dtype.block_size))
        bytes_of(out)[...] = rows.reshape(out.data.shape)


def multiply(kernel, change):
    """Compute a product of operands that have been changed."""
    a, b = (change(decoded(operand)) for operand in kernel.operands)
    kernel.out[...] = np.matmul(a, b) if kernel.op is Op.MATMUL else a * b.T


# -- faults ---------------------------------------------------------------------------------------

FAULTS = []


def fault(*names, says=None):
    """Register a fault with the cases that have to see it, and with words that they say."""

    def register(spoil):
        FAULTS.extend(
            pytest.param(spoil, name, says, id=f"{spoil.__name__}-{name}") for name in names
        )
        return spoil

    return register


@fault(
    "matmul-float32-1x1x1",
    "matmul-int8-2x3x4",
    "matmul-float32-3x4x0",
    "matmul-uint64-1x4x0",
    "matmul-q4_1-3x4x0 along k right",
    "out_prod-float64-1x7",
    "copy-q8_0-decoding odd",
    "copy-q4_1-encoding (7, 96)",
)
def leaves_memory_as_it_was(kernel, before, n_threads):
    bytes_of(kernel.out)[...] = before


@fault("matmul-float32-8x8x8", "matmul-int16-8x8x8", "out_prod-int8-33x65", "matmul-float64-3x4x0")
def adds_to_what_is_there(kernel, before, n_threads):
    kernel.out[...] += before


@fault("matmul-float32-7x1x5", "out_prod-int64-1x7", "copy-q4_0-decoding whole", says="beside")
def writes_behind_a_row(kernel, before, n_threads):
    out = kernel.out
    longer = (*out.shape[:-1], out.shape[-1] + 1)
    np.lib.stride_tricks.as_strided(out, longer, out.strides)[..., -1] = 0


@fault("matmul-complex64-1x65x300", "out_prod-bfloat16-33x65", says="beside")
def writes_before_the_result(kernel, before, n_threads):
    memory = kernel.out.base
    memory[kernel.out.ctypes.data - memory.ctypes.data - 1] ^= 1


@fault("matmul-float32-8x8x8", "matmul-int8-8x8x8", "out_prod-float32-33x65", says="an operand")
def spoils_an_operand(kernel, before, n_threads):
    kernel.operands[1][0, 0] = 7


@fault("matmul-int32-33x65x31", "matmul-float64-33x65x31", "matmul-complex64-1x65x300")
@fault("matmul-bfloat16-33x65x31", "copy-q8_0-decoding whole")
def the_last_element_is_off(kernel, before, n_threads):
    kernel.out[..., -1, -1] += np.asarray(0.5 + np.abs(kernel.out).max()).astype(kernel.out.dtype)


@fault("matmul-q8_0-33x256x512 along k of rows right", says="1 of 8448 elements are far off")
def one_element_is_missing(kernel, before, n_threads):
    row = kernel.out[0]
    row[np.abs(np.abs(row) - 1.5 * np.std(row)).argmin()] = 0


@fault("out_prod-float32-33x65", "out_prod-float64-1x1")
def the_last_bit_is_wrong(kernel, before, n_threads):
    np.nextafter(kernel.out, np.inf, out=kernel.out)


@fault("out_prod-float32-33x65 of special values")
def zeros_lose_their_sign(kernel, before, n_threads):
    kernel.out += 0


@fault("matmul-float32-33x65x31", "matmul-float32-1x65x300", "out_prod-float32-33x65")
def computes_in_fewer_bits(kernel, before, n_threads):
    multiply(kernel, lambda x: x.astype(np.float16).astype(x.dtype))


@fault("matmul-float32-23x33x31 of every second by rows", "matmul-int8-23x33x31 of rows by panel")
def takes_every_operand_for_contiguous(kernel, before, n_threads):
    def contiguous(x):
        strides = x.itemsize * x.shape[-1], x.itemsize
        return np.lib.stride_tricks.as_strided(x, x.shape, strides)

    multiply(kernel, contiguous)


@fault("matmul-float32-4x6x5 of (3,) by (3,)", "matmul-int64-1x6x5 of (3,) by (1,)")
def takes_the_first_of_a_batch(kernel, before, n_threads):
    multiply(kernel, lambda x: x[:1])


@fault("matmul-float32-23x33x31 of special values", "out_prod-float64-33x65 of special values")
@fault("matmul-complex128-23x33x31 of special values", "matmul-q4_0-5 rows of special values left")
def knows_no_infinity(kernel, before, n_threads):
    multiply(kernel, lambda x: np.nan_to_num(x, posinf=9, neginf=-9))


@fault("matmul-float32-8x8x8")
def fails_with_two_threads(kernel, before, n_threads):
    if n_threads == 2:
        kernel.out[...] = before


@fault("matmul-float32-8x8x8", "copy-q4_0-encoding (7, 96)", says="FAILED")
def returns_a_failure(kernel, before, n_threads):
    return Status.FAILED


@fault("copy-q8_0-encoding (7, 96)", says="times ggml's")
def encodes_in_fewer_bits(kernel, before, n_threads):
    bytes_of(kernel.out)[..., 2:] &= 0xF0


@pytest.mark.parametrize(("spoil", "name", "says"), FAULTS)
def test_fault_is_seen(spoil, name, says):
    assert check(do_nothing, name)
    with pytest.raises(AssertionError, match=says):
        check(spoil, name)


def test_devices_may_compute_in_fewer_bits():
    for name in ("matmul-float32-33x65x31", "out_prod-float32-33x65"):
        assert check(computes_in_fewer_bits, name, nmse=1e-6)
        with pytest.raises(AssertionError, match="mean square"):
            check(computes_in_fewer_bits, name, nmse=1e-9)


def test_every_copy_by_numpy():
    for name, case in BY_NAME.items():
        if case.op is Op.COPY:
            assert check(do_nothing, name)


def test_answers_that_depend_on_values():
    class Hasty(SpoiledDevice):
        def supports_op(self, node):
            return all(isinstance(x, np.ndarray) for x in node.operands)

    device = Hasty(do_nothing)
    with pytest.raises(AssertionError, match="pending"):
        check_case(device, Hasty.init_backend, BY_NAME["matmul-float32-8x8x8"], 3, bool)


# -- from the command line ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plugins(tmp_path_factory):
    """A folder with the installed backends of tests/plugin_backend."""
    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(ROOT / "tests" / "plugin_backend", source)
    return install(source, tmp_path_factory.mktemp("site"))


def run_conformance(monkeypatch, site, *arguments, fault="", tests=""):
    """Run the test of backends, or one of its modules, as an author does; return the report."""
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("PLUGIN_FAULT", fault)
    command = [sys.executable, "-m", "pytest", f"conformance/backend/{tests}", *arguments]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def failed(report):
    return set(re.findall(r"^FAILED \S+::(\w+)", report, re.MULTILINE))


@pytest.mark.parametrize("name", ["reference", "reference:remote"])
def test_the_reference_passes(plugins, monkeypatch, name):
    code, report = run_conformance(monkeypatch, plugins, "--device", name)
    assert code == 0, report
    assert re.search(rf"^{name} matmul: (\d+) of \1: int8, .*bfloat16, q4_0", report, re.MULTILINE)
    assert re.search(rf"^{name} copy: 0 of", report, re.MULTILINE)


@pytest.mark.parametrize(
    ("fault", "arguments", "expected"),
    [
        ("failed", (), {"test_kernels_are_computed_in_order", "test_stream"}),
        ("raise", (), {"test_kernels_are_computed_in_order", "test_stream"}),
        ("supports nothing", (), {"test_device_is_of_use"}),
        ("supports nothing", ("--idle",), set()),
    ],
)
def test_a_faulty_backend(plugins, monkeypatch, fault, arguments, expected):
    arguments = ("--device", "faulty", "-k", "not skipped", *arguments)
    code, report = run_conformance(
        monkeypatch, plugins, *arguments, fault=fault, tests="test_streams.py"
    )
    assert failed(report) == expected, report
    assert code == bool(expected), report


COMPUTING = {
    "test_kernels_are_computed_in_order",
    "test_nodes_that_are_to_be_skipped",
    "test_stream",
}
OTHER_MEMORY = {
    "test_plan_of_other_memory",
    "test_plan_that_is_updated_first",
    "test_several_plans",
}
UPDATES = OTHER_MEMORY | {"test_plan"}
PLANS = UPDATES | {"test_nodes_that_are_to_be_skipped", "test_plan_of_nothing"}
ABORTS = {"test_abort", "test_abort_between_nodes", "test_no_abort"}
TWO_STREAMS = {"test_a_stream_waits_for_another_one", "test_copies_from_another_stream"}
STREAMS = TWO_STREAMS | {
    "test_the_host_waits_for_an_event",
    "test_what_is_asked_of_a_stream_happens_in_order",
}
WRAPPING = {"test_product_in_wrapped_memory", "test_wrapped_memory"}
VALUES = {
    "test_clearing",
    "test_copies",
    "test_direct_copies",
    "test_memory_is_used_again",
    "test_more_than_a_buffer_holds",
    "test_one_tensor_that_is_larger",
    "test_parts_of_values",
    "test_product_in_memory_of_the_device",
    "test_too_much_memory",
    "test_values_come_back",
}
ALLOCATIONS = VALUES | {"test_buffers", "test_memory_is_given_back"}

# A device, its fault, a module, which of its tests are run (all without a word), and which see it.
FAULTY = [
    ("faulty", "", "async", "", set()),
    ("faulty:remote", "", "buffers", "", set()),
    ("faulty", "failed", "plans", "", PLANS),
    ("faulty", "aborted in the end", "aborts", "", ABORTS),
    ("faulty", "allocation failed in the end", "streams", "", COMPUTING),
    ("faulty", "raise in the end", "streams", "", COMPUTING),
    ("faulty:remote", "failed in the end", "async", "", STREAMS),
    ("faulty:remote", "waits for no event", "async", "another", TWO_STREAMS),
    ("faulty", "knows no flags", "streams", "", {"test_nodes_that_are_to_be_skipped"}),
    ("faulty", "writes behind results", "kernels", "8x8x8", {"test_kernel"}),
    ("faulty:remote", "writes behind results", "kernels", "8x8x8", {"test_kernel"}),
    ("faulty", "plans cannot be updated", "plans", "", UPDATES),
    ("faulty", "plans keep their memory", "plans", "", OTHER_MEMORY),
    ("faulty:remote", "loses a node", "streams", "", {"test_order_of_nodes"}),
    ("faulty:remote", "puts results before operands", "streams", "", {"test_order_of_nodes"}),
    ("faulty", "cannot map memory", "buffers", "", WRAPPING),
    ("faulty:remote", "only says that it copies", "buffers", "", {"test_direct_copies"}),
    ("faulty:remote", "out of memory", "buffers", "", ALLOCATIONS),
    ("faulty:remote", "takes no tensors", "buffers", "", VALUES),
    ("faulty:remote", "cannot be written", "buffers", "", VALUES),
    ("faulty:remote", "cannot be read", "buffers", "", VALUES),
    ("faulty:remote", "forgets what is written", "buffers", "", VALUES - {"test_clearing"}),
]

# Tries all faults in one process, and prints which tests have seen each.
TRY_FAULTS = """
import json, sys
import pytest
from ggarray._runtime import plugins
from ggarray_plugin_backends import faulty

class Failures:
    def __init__(self):
        self.seen = set()

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.seen.add(report.nodeid.split("::")[1].partition("[")[0])

found = []
for device, fault, module, word, _ in json.loads(sys.argv[1]):
    faulty.fault = fault
    failures = Failures()
    options = ["-q", "--tb=no", "-p", "no:cacheprovider", "--device", device, "-k", word]
    code = pytest.main([f"conformance/backend/test_{module}.py", *options], plugins=[failures])
    assert code == (1 if failures.seen else 0), (device, fault, code)
    plugins._streams.clear()
    found.append(sorted(failures.seen))
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def seen(plugins):
    """Which tests have seen a fault, by device and fault."""
    done = subprocess.run(
        [sys.executable, "-c", TRY_FAULTS, json.dumps(FAULTY, default=list)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(plugins)},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    return {row[:2]: set(names) for row, names in zip(FAULTY, found, strict=True)}


@pytest.mark.parametrize(
    ("device", "fault", "expected"),
    [pytest.param(*row[:2], row[-1], id="-".join(row[:3])) for row in FAULTY],
)
def test_a_faulty_device(seen, device, fault, expected):
    assert seen[device, fault] == expected


def test_what_a_device_leaves_to_others_is_counted(plugins, monkeypatch):
    arguments = ("--device", "faulty", "-k", "33x65")
    fault = "supports no outer product"
    code, report = run_conformance(
        monkeypatch, plugins, *arguments, fault=fault, tests="test_kernels.py"
    )
    assert code == 0, report
    assert re.search(r"^faulty matmul: (\d+) of \1: int8", report, re.MULTILINE)
    assert re.search(r"^faulty out_prod: 0 of \d+$", report, re.MULTILINE)
    assert re.search(r"^SKIPPED .* faulty leaves it to others$", report, re.MULTILINE)


def test_which_devices_are_tried(plugins, monkeypatch, tmp_path):
    (tmp_path / "at_run_time.py").write_text(
        "import ggarray, doubles\nggarray.register_backend(doubles.NumpyRegistry())\n"
    )
    path = f"{plugins}:{tmp_path}:{TESTS}"

    def tried(*arguments):
        options = ("-k", "test_description", "-v", *arguments)
        code, report = run_conformance(monkeypatch, path, *options, tests="test_streams.py")
        assert code == 0, report
        return re.findall(r"test_description\[([\w:]+)\] PASSED", report)

    assert tried() == ["cpu", "blas"]
    assert tried("--device", "null", "--device", "blas") == ["null", "blas"]
    assert tried("-p", "at_run_time", "--device", "counting") == ["counting"]
    code, report = run_conformance(monkeypatch, path, "--device", "faulty:7", fault="import")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "unknown device 'faulty:7'; the devices here are cpu, " in report
    assert "libfaulty.so is missing" in report


def test_a_limit_for_devices_of_fewer_bits(monkeypatch, tmp_path):
    (tmp_path / "coarse.py").write_text(
        dedent("""
            import ggarray
            from doubles import NumpyRegistry
            from test_backend_conformance import SpoiledDevice, computes_in_fewer_bits

            registry = NumpyRegistry()
            registry.devices = lambda: [SpoiledDevice(computes_in_fewer_bits)]
            ggarray.register_backend(registry)
        """)
    )
    path = f"{tmp_path}:{TESTS}"
    options = ("-p", "coarse", "--device", "spoiled", "-k", "matmul-float32-33x65x31")
    for more, expected in [((), {"test_kernel"}), (("--nmse", "1e-6"), set())]:
        code, report = run_conformance(monkeypatch, path, *options, *more, tests="test_kernels.py")
        assert failed(report) == expected, report
        assert code == bool(expected), report


# -- the manual -----------------------------------------------------------------------------------


MANUAL = (ROOT / "docs" / "writing-a-backend.md").read_text()


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """A folder with the installed example of the manual."""
    source = tmp_path_factory.mktemp("example")
    files = re.findall(r"^`(\S+)`:\n\n```\w+\n(.*?)^```$", MANUAL, re.MULTILINE | re.DOTALL)
    assert [name for name, _ in files] == ["pyproject.toml", "ggarray_einsum.py"]
    for name, text in files:
        assert len(text.splitlines()) < 100
        (source / name).write_text(text)
    return install(source, tmp_path_factory.mktemp("site"))


def test_the_example_passes(example, monkeypatch):
    code, report = run_conformance(monkeypatch, example, "--device", "einsum")
    assert code == 0, report
    assert re.search(r"^einsum matmul: \d\d+ of .*float64.*q8_0", report, re.MULTILINE)
    assert re.search(r"^einsum out_prod: \d\d+ of", report, re.MULTILINE)


def test_the_example_as_its_user_sees_it(example):
    (script,) = re.findall(r"^Its user writes:\n\n```python\n(.*?)^```$", MANUAL, re.M | re.S)
    table = run_script(f"{script}\nassert abs(y - 320).max() < 1", PYTHONPATH=str(example))
    assert re.search(r"matmul.*einsum|einsum.*matmul", table), table
