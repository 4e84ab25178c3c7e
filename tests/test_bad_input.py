"""Wrong requests: the class of the error, and that its message says what to change."""

import inspect
import operator
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _quantized.gguf_files import forged, tensor
from values import on_cpu, pending, zeros_q8_0

import ggarray as xp
from ggarray import fft, linalg

ROOT = Path(__file__).parents[1]
SHAPES = ((2, 3), (4, 5))

# What functions need besides arrays.
ARGUMENTS = {
    "axes": (0, 1),
    "axis": (),
    "dtype": np.float32,
    "fill_value": 1.0,
    "n": 2,
    "repeats": 2,
    "repetitions": (2, 2),
    "shape": (2, 2),
    "shift": 1,
    "source": 0,
    "destination": 1,
}
ARRAYS = ("x", "x1", "x2", "condition", "indices", "arrays")
NO_ARRAYS = ("result_type", "from_dlpack", "asarray")


def required(function):
    """The names of the arguments that a call cannot do without."""
    parameters = inspect.signature(function).parameters.values()
    return [
        each.name
        for each in parameters
        if each.default is each.empty and each.kind is not each.KEYWORD_ONLY
    ]


def functions(module):
    """Functions of a module that take arrays, by name."""
    found = {}
    for name in module.__all__:
        function = getattr(module, name)
        if inspect.isfunction(function) and name not in NO_ARRAYS:
            names = required(function)
            if names and names[0] in ARRAYS:
                found[f"{module.__name__}.{name}"] = function
    return found


FUNCTIONS = functions(xp) | functions(linalg) | functions(fft)

# These take quantized arrays, or name the functions that make them.
FOR_QUANTIZED = {
    "astype",
    "broadcast_arrays",
    "concat",
    "concatenate",
    "dequantize",
    "evaluate",
    "graph",
    "is_pending",
    "matmul",
    "matrix_power",
}
FOR_QUANTIZED |= {
    "matrix_power",
    "matrix_transpose",
    "moveaxis",
    "outer",
    "permute_dims",
    "reserve",
}
FOR_QUANTIZED |= {
    "quantized_bytes",
    "reserve",
    "reshape",
    "stack",
    "take",
    "tensordot",
    "unstack",
    "vecdot",
}
FOR_QUANTIZED |= {f"{name}_like" for name in ("empty", "full", "ones", "zeros")}
PLAIN_ONLY = [name for name in FUNCTIONS if name.rpartition(".")[2] not in FOR_QUANTIZED]


# These take their arrays in a sequence.
SEQUENCES = (xp.concat, xp.concatenate, xp.stack)


def call(function, first, other):
    """Call with `first` as the first array, and `other` where another one is needed."""
    arguments = []
    for name in required(function):
        if name == "arrays":
            arguments.append([first, other] if function in SEQUENCES else first)
        elif name == "indices":
            arguments.append(on_cpu(np.zeros((2, 2)), np.int64))
        elif name in ARRAYS:
            arguments.append(other if arguments else first)
        elif name == "dtype" and function is xp.quantize:
            arguments.append(xp.q8_0)
        else:
            arguments.append(ARGUMENTS[name])
    return function(*arguments)


def test_the_table_of_functions_is_not_empty():
    assert len(FUNCTIONS) > 150
    assert {"ggarray.add", "ggarray.linalg.svd", "ggarray.fft.fft"} < set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    "given", [[[1.0, 2.0], [3.0, 4.0]], "text", None], ids=["list", "str", "None"]
)
def test_what_is_no_array_is_refused(name, given):
    array = on_cpu(np.eye(2))
    with pytest.raises(TypeError, match=r"[Aa]rray"):
        call(FUNCTIONS[name], given, array)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ndarrays_alone_are_refused(name):
    with pytest.raises(TypeError, match=r"[Aa]rray"):
        call(FUNCTIONS[name], np.eye(2), np.eye(2))


@pytest.mark.parametrize("name", ["concat", "stack", "broadcast_arrays", "meshgrid"])
@pytest.mark.parametrize("given", [[1.0, 2.0], np.ones(2), 1.0], ids=["list", "ndarray", "float"])
def test_one_among_several_that_is_no_array_is_refused(name, given):
    function, array = getattr(xp, name), on_cpu([1.0, 2.0])
    for arrays in ((array, given), (given, array)):
        with pytest.raises(TypeError, match=r"[Aa]rray"):
            function(arrays) if name in ("concat", "stack") else function(*arrays)


# -- shapes and dtypes --------------------------------------------------------------------------

FOR_FITTING_SHAPES = [xp.add, xp.multiply, xp.less, xp.matmul, xp.vecdot, linalg.matmul]
FOR_FITTING_SHAPES += [operator.sub, operator.matmul, operator.iadd, operator.eq]


@pytest.mark.parametrize("make", [on_cpu, pending], ids=["plain", "pending"])
@pytest.mark.parametrize("function", FOR_FITTING_SHAPES)
def test_shapes_that_do_not_fit_are_both_named(function, make):
    x, y = (make(np.ones(shape)) for shape in SHAPES)
    with pytest.raises(ValueError, match=r"\(2, ?3\).*\(4, ?5\)"):
        function(x, y)


def test_products_of_other_shapes_name_both():
    x, y = (on_cpu(np.ones(shape)) for shape in SHAPES)
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(4, 5\)"):
        xp.tensordot(x, y, axes=1)
    with pytest.raises(ValueError, match=r"\(2, 3\).*\(4, 5\)"):
        linalg.outer(x, y)


@pytest.mark.parametrize(
    ("function", "dtypes"),
    [
        (xp.bitwise_and, (np.float32, np.float32)),
        (xp.bitwise_left_shift, (np.int8, np.float32)),
        (xp.bitwise_invert, (np.float64,)),
        (xp.subtract, (np.bool_, np.bool_)),
        (xp.negative, (np.bool_,)),
        (xp.less, (np.float32, "U1")),
        (xp.floor, (np.complex64,)),
        (xp.atan2, (np.complex64, np.complex64)),
        (linalg.cholesky, (np.int64,)),
        (linalg.inv, (np.bool_,)),
        (fft.rfft, (np.complex64,)),
    ],
)
def test_wrong_dtypes_raise(function, dtypes):
    with pytest.raises(TypeError):
        function(*(on_cpu(np.ones((2, 2)), dtype) for dtype in dtypes))


@pytest.mark.parametrize("dtype", [np.int8, np.bool_, np.complex64])
def test_quantized_weights_take_floating_operands_only(dtype):
    weights, x = zeros_q8_0((4, 32)), on_cpu(np.ones((32, 3)), dtype)
    for product in (lambda: weights @ x, lambda: x.T @ weights.T):
        with pytest.raises(TypeError, match=f"q8_0.*{np.dtype(dtype)}|{np.dtype(dtype)}.*q8_0"):
            product()


@pytest.mark.parametrize("dtype", ["U3", "datetime64[s]", "longdouble", "O"])
def test_there_are_no_arrays_of_other_dtypes(dtype):
    value = np.full(2, None) if dtype == "O" else np.zeros(2, dtype)
    for make in (xp.asarray, lambda value: xp.zeros(2, dtype=value.dtype)):
        with pytest.raises(TypeError, match=re.escape(str(value.dtype))):
            make(value)


# -- devices and threads ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        xp.Device,
        xp.set_default_device,
        lambda device: xp.default_device(device).__enter__(),
        lambda device: xp.asarray([1.0], device=device),
        lambda device: xp.zeros((2,), device=device),
        lambda device: xp.eye(2, device=device),
        lambda device: xp.arange(3, device=device),
        lambda device: xp.from_dlpack(np.ones(2), device=device),
        lambda device: xp.astype(on_cpu(1.0), xp.float32, device=device),
        lambda device: on_cpu(1.0).to_device(device),
        lambda device: xp.quantized_from_bytes(bytes(34), xp.q8_0, (32,), device=device),
        lambda device: fft.fftfreq(3, device=device),
        lambda device: xp.__array_namespace_info__().dtypes(device=device),
    ],
)
def test_an_unknown_device_is_answered_with_the_known(function):
    before = xp.get_default_device()
    with pytest.raises(ValueError, match="unknown device 'gpu'") as error:
        function("gpu")
    assert all(str(device) in str(error.value) for device in xp.devices())
    assert xp.get_default_device() == before


@pytest.mark.parametrize("device", [1, b"cpu", 1.5], ids=repr)
def test_a_device_is_a_name(device):
    for function in (lambda: xp.zeros(2, device=device), lambda: on_cpu(1.0).to_device(device)):
        with pytest.raises(TypeError, match="device"):
            function()


@pytest.mark.parametrize(
    ("n", "kind"), [(0, ValueError), (-2, ValueError), (1.5, TypeError), ("2", TypeError)]
)
@pytest.mark.parametrize("function", [xp.set_num_threads, lambda n: xp.num_threads(n).__enter__()])
def test_numbers_of_threads_below_one_raise(function, n, kind):
    before = xp.get_num_threads()
    with pytest.raises(kind):
        function(n)
    assert xp.get_num_threads() == before


FOR_ONE_DEVICE = [xp.matmul, xp.add, xp.vecdot, xp.tensordot, xp.less, xp.clip, linalg.solve]
FOR_ONE_DEVICE += [operator.iadd, np.add, np.matmul, lambda x, y: xp.concat([x, y])]
FOR_ONE_DEVICE += [lambda x, y: xp.where(x > 0, x, y), lambda x, y: linalg.outer(x[0], y[0])]
FOR_ONE_DEVICE += [lambda x, y: operator.setitem(x, 0, y[0])]


@pytest.mark.parametrize("function", FOR_ONE_DEVICE)
def test_devices_that_do_not_mix_point_to_to_device(function):
    x, y = on_cpu(np.eye(2)), xp.asarray(np.eye(2), device="counting")
    for operands in ((x, y), (y, x)):
        with pytest.raises(ValueError, match="to_device") as error:
            function(*operands)
        assert "'cpu'" in str(error.value)
        assert "'counting'" in str(error.value)


# -- quantization -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(2, 33), (31,), (32, 1), ()])
@pytest.mark.parametrize("dtype", [xp.q4_0, xp.q4_1, xp.q8_0], ids=str)
def test_the_quantized_axis_has_whole_blocks(dtype, shape):
    for make in (
        lambda: xp.quantize(on_cpu(np.ones(shape), np.float32), dtype),
        lambda: xp.quantized_from_bytes(b"", dtype, shape),
        lambda: xp.astype(on_cpu(np.ones(shape), np.float32), dtype),
    ):
        with pytest.raises(ValueError, match="multiple of the block") as error:
            make()
        assert all(text in str(error.value) for text in (str(shape), dtype.name, "32"))


@pytest.mark.parametrize("name", PLAIN_ONLY)
def test_functions_of_a_quantized_array_point_to_dequantize(name):
    x = zeros_q8_0((32, 32))
    with pytest.raises(TypeError, match="dequantize"):
        call(FUNCTIONS[name], x, x)


@pytest.mark.parametrize(
    "op", [operator.add, operator.mul, operator.iadd, operator.eq, operator.lt, np.add]
)
@pytest.mark.parametrize(
    "other", [2.0, np.ones((2, 32)), None], ids=["scalar", "ndarray", "itself"]
)
def test_operators_of_a_quantized_array_point_to_dequantize(op, other):
    x = zeros_q8_0((2, 32))
    with pytest.raises(TypeError, match="dequantize"):
        op(x, x if other is None else other)


# -- values and options -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda: xp.add(on_cpu([1], np.int8), 200),
        lambda: 200 - on_cpu([1], np.int8),
        lambda: pending(np.ones((2, 2), np.uint8)) * -1,
        lambda: xp.asarray(300, dtype=xp.uint8),
        lambda: xp.asarray([2**64]),
        lambda: xp.full((2,), -1, dtype=xp.uint64),
        lambda: xp.full_like(on_cpu([1], np.int8), 128),
        lambda: xp.arange(300, dtype=xp.int8),
        lambda: operator.setitem(on_cpu([1], np.int8), 0, 128),
        lambda: xp.where(on_cpu([True]), on_cpu([1], np.int8), 1000),
    ],
)
def test_scalars_out_of_range_overflow(function):
    with pytest.raises(OverflowError):
        function()


@pytest.mark.parametrize(
    "function",
    [xp.set_options, lambda **chosen: xp.options(**chosen).__enter__()],
    ids=["set", "with"],
)
def test_an_unknown_option_is_answered_with_the_known(function):
    before = xp.get_options()
    with pytest.raises(ValueError, match="'lasy'") as error:
        function(lazy=False, lasy=True)
    assert all(name in str(error.value) for name in before)
    assert xp.get_options() == before


# -- files --------------------------------------------------------------------------------------


def test_a_gguf_file_with_an_unknown_type(tmp_path):
    path = tmp_path / "new.gguf"
    path.write_bytes(forged([], [tensor("w", (32,), 999)], bytes(128)))
    with pytest.raises(xp.GGUFError, match=r"'w'.*999") as error:
        xp.load_gguf(path)
    assert isinstance(error.value, ValueError)


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.gguf"):
        xp.load_gguf(tmp_path / "missing.gguf")
    path = tmp_path / "text.gguf"
    path.write_text("Not a model at all, but long enough to have a header.")
    with pytest.raises(xp.GGUFError, match=r"text\.gguf"):
        xp.load_gguf(path)


@pytest.mark.parametrize("arguments", [["--model", "/nonexistent"], ["--device", "gpu"]], ids=str)
def test_the_demo_answers_in_a_sentence(arguments):
    command = [sys.executable, "-m", "conformance.programs.generate", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert arguments[1] in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
