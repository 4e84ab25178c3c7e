"""Backends of other distributions, as pip installs them, each in a process of its own."""

import base64
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from scripts import TESTS, install, run_script

import ggarray as xp
from ggarray.backends import blas, cpu
from ggarray.interface import API_VERSION

SOURCE = Path(__file__).parent
NAMES = ["faulty", "faulty:remote", "null", "reference", "reference:remote"]
ORIGIN = "faulty of ggarray-plugin-backends 1.0"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder with the installed distribution of this one."""
    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(SOURCE, source)
    return install(source, tmp_path_factory.mktemp("site"))


PREAMBLE = """
import logging
records = []
handler = logging.Handler()
handler.emit = records.append
logging.getLogger("ggarray").addHandler(handler)
import numpy as np
import ggarray as xp
"""


def run(script, site, **environment):
    """Run a script that sees what is installed in `site`, and keeps ggarray's log in `records`."""
    path = f"{TESTS}:{site}"
    return run_script(PREAMBLE + dedent(script), PYTHONPATH=path, **environment)


def distribution(folder, name, source, *, target="{module}:registry"):
    """Install a distribution of one module by hand, and what its entry point names."""
    module = name.replace("-", "_")
    info = folder / f"{module}-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 2.0\n")
    entry_point = f"{name} = {target.format(module=module)}"
    (info / "entry_points.txt").write_text(f"[ggarray.backends]\n{entry_point}\n")
    (folder / f"{module}.py").write_text(dedent(source))


def build(folder, name, device, score, backend="multiple"):
    """Install one build of a backend, with its one device."""
    source = f"""
        from doubles import NumpyDevice
        from ggarray.interface import Registry

        class Build(Registry):
            name = "{backend}"
            def score(self):
                return {score}
            def devices(self):
                return [NumpyDevice("{device}")]

        registry = Build()
    """
    distribution(folder, name, source)


def test_what_is_installed_is_there(site):
    script = """
        before = xp.get_default_device()
        names = list(xp.devices())
        print(*names, sep="\\n")
        assert xp.get_default_device() is before
        assert before not in names[-5:]
        assert xp.Device("reference") in xp.devices()
        assert xp.ones(2, device="reference").device == "reference"
        assert not records
    """
    built_in = [device.name for each in (cpu, blas) for device in each.registry.devices()]
    assert run(script, site).splitlines() == [*built_in, *NAMES]


def test_registered_backends_come_last(site):
    script = """
        from doubles import NumpyRegistry
        xp.register_backend(NumpyRegistry())
        print(*xp.devices()[-7:])
    """
    assert run(script, site).split() == [*NAMES, "counting", "failing"]


def test_import_is_the_same(site):
    script = "import sys; print(*sorted(sys.modules), sep='\\n')"
    with_plugins = run(script, site).splitlines()
    assert with_plugins == run(script, "").splitlines()
    assert "ggarray" in with_plugins
    assert "importlib.metadata" not in with_plugins
    assert not [name for name in with_plugins if name.startswith("ggarray_plugin_backends")]


def test_entry_points_are_read_once(site):
    script = """
        import importlib.metadata
        read = importlib.metadata.entry_points
        groups = []

        def counted(**selection):
            groups.append(selection)
            return read(**selection)

        importlib.metadata.entry_points = counted
        for _ in range(3):
            xp.devices()
            x = xp.ones((2, 2), device="reference")
            assert float((x @ x)[0, 0]) == 2
            try:
                xp.Device("nowhere")
            except ValueError:
                pass
        print(groups)
    """
    assert run(script, site).strip() == "[{'group': 'ggarray.backends'}]"


BROKEN = {
    "import": "ImportError: libfaulty.so is missing",
    "exit": "SystemExit: no licence for faulty",
    "no registry": "TypeError: a backend is a ggarray.interface.Registry object, not <object",
    "version": f"BackendError: backend 'faulty' was made for version {API_VERSION + 1} of",
    "score": "OSError: no such processor is known",
    "devices": "OSError: the driver has a long story to tell",
    "a silent device": "OSError: faulty:2 does not answer",
    "a name that is taken": "ValueError: backend 'faulty': a device 'cpu' is registered already",
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_backend_is_left_out(site, fault):
    script = f"""
        import contextlib, io
        error = {BROKEN[fault]!r}
        assert xp.devices()[0] == "cpu"
        assert xp.devices()[-3:] == ("null", "reference", "reference:remote")
        assert "faulty" not in xp.devices()

        (record,) = records
        assert record.levelno == logging.WARNING
        assert f"{ORIGIN}: {{error}}" in record.getMessage()
        assert "\\n" not in record.getMessage()

        for name, meant in {{"faulty": True, "faulty:7": True, "nowhere": False}}.items():
            try:
                xp.ones(1, device=name)
            except ValueError as unknown:
                assert f"unknown device {{name!r}}" in str(unknown)
                assert "null, reference, reference:remote" in str(unknown)
                assert (error in str(unknown)) is meant, unknown
            else:
                raise AssertionError(name)

        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            xp.show_config()
        title, line = text.getvalue().splitlines()[-2:]
        assert title == "installed backends left out"
        assert line.strip().startswith(f"{ORIGIN}: {{error}}")

        for name in xp.devices():
            x = xp.asarray([[1, 2], [3, 4]], device=name)
            assert (x @ x).tolist() == [[7, 10], [15, 22]]
        assert len(records) == 1
    """
    run(script, site, PLUGIN_FAULT=fault)


def test_command_names_what_is_left_out(site, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(site))
    monkeypatch.setenv("PLUGIN_FAULT", "import")
    done = subprocess.run(
        [sys.executable, "-m", "ggarray"], capture_output=True, text=True, timeout=120, check=True
    )
    assert f"{ORIGIN}: {BROKEN['import']}" in done.stdout
    assert f"{ORIGIN}: {BROKEN['import']}" in done.stderr


def test_a_default_device_that_is_broken(site):
    script = """
        try:
            xp.ones(1)
        except ValueError as error:
            print(error)
    """
    message = run(script, site, PLUGIN_FAULT="import", GGARRAY_DEVICE="faulty")
    assert "GGARRAY_DEVICE" in message
    assert BROKEN["import"] in message


def test_a_score_of_zero_is_silent(site):
    script = f"""
        import contextlib, io
        logging.getLogger("ggarray").setLevel(logging.DEBUG)
        assert "faulty" not in xp.devices()
        (record,) = [each for each in records if "{ORIGIN}" in each.getMessage()]
        assert record.levelno == logging.DEBUG
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            xp.show_config()
        assert "faulty" not in text.getvalue()
        try:
            xp.Device("faulty")
        except ValueError as error:
            assert "left out" not in str(error)
    """
    run(script, site, PLUGIN_FAULT="unusable")


@pytest.mark.parametrize("scores", [(1, 5, 2), (5, 1, 2), (2, 1, 5), (0, 5, 0)])
def test_the_build_with_the_best_score_is_taken(tmp_path, scores):
    for at, score in enumerate(scores):
        build(tmp_path, f"build-{at}", f"{at} of score {score}", score)
    build(tmp_path, "another-backend", "of another backend", 1, backend="another")
    script = "print(*xp.devices()[-2:], sep='\\n'); assert not records"
    best = scores.index(5)
    assert run(script, tmp_path).splitlines() == ["of another backend", f"{best} of score 5"]


def test_the_next_best_where_the_best_is_broken(tmp_path):
    build(tmp_path, "fast", "cpu", 3)
    build(tmp_path, "slow", "slow", 2)
    build(tmp_path, "slower", "slower", 1)
    script = """
        print(xp.devices()[-1])
        (record,) = records
        print(record.getMessage())
    """
    device, message = run(script, tmp_path).splitlines()
    assert device == "slow"
    assert "fast of fast 2.0: ValueError" in message


NOT_TO_BE_LOADED = {
    "no module": "nowhere:registry",
    "no object": "{module}:nothing",
    "a module": "{module}",
    "a class": "{module}:Registry",
    "no entry point": "{module}:registry]",
}


@pytest.mark.parametrize("target", NOT_TO_BE_LOADED.values(), ids=NOT_TO_BE_LOADED)
def test_entry_points_that_name_no_registry(tmp_path, target):
    source = "from ggarray.interface import Registry"
    distribution(tmp_path, "wrong", source, target=target)
    build(tmp_path, "right", "right", 1)
    script = "print(xp.devices()[-1]); print(*[each.getMessage() for each in records], sep='\\n')"
    device, message = run(script, tmp_path).splitlines()
    assert device == "right"
    assert "wrong of wrong 2.0: " in message


def test_metadata_that_cannot_be_read(tmp_path):
    distribution(tmp_path, "garbled", "")
    (entry_points,) = tmp_path.glob("*/entry_points.txt")
    entry_points.write_text("[some.group]\nno equals sign\n")
    script = "print(xp.devices()[0]); print(*[each.getMessage() for each in records], sep='\\n')"
    device, message = run(script, tmp_path).splitlines()
    assert device == "cpu"
    assert "entry points cannot be read" in message


def test_a_traceback_is_logged_for_authors(tmp_path):
    distribution(tmp_path, "author", "1 / 0")
    script = """
        logging.getLogger("ggarray").setLevel(logging.DEBUG)
        xp.devices()
        (record,) = [each for each in records if each.levelno == logging.WARNING]
        print(logging.Formatter().format(record))
    """
    text = run(script, tmp_path)
    assert "Traceback" in text
    assert "author.py" in text


def test_first_use_from_many_threads(tmp_path):
    build(tmp_path, "slow", "slow", "__import__('time').sleep(0.2) or 1")
    script = """
        import threading
        start = threading.Barrier(8)
        seen = []

        def work():
            start.wait()
            seen.append(xp.ones(1, device="slow").device)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == ["slow"] * 8
        assert not records
    """
    run(script, tmp_path)


def test_a_backend_that_uses_ggarray_while_it_is_imported(tmp_path):
    build(tmp_path, "eager", "eager", 1)
    module = tmp_path / "eager.py"
    module.write_text("import ggarray as xp\nSEEN = list(xp.devices())\n" + module.read_text())
    script = """
        print(xp.devices()[-1])
        import eager
        assert "cpu" in eager.SEEN and "eager" not in eager.SEEN
        assert not records
    """
    assert run(script, tmp_path).split() == ["eager"]


def test_ctrl_c_while_a_backend_is_imported(tmp_path):
    build(tmp_path, "slow", "slow", 1)
    build(tmp_path, "another", "another", 1, backend="another")
    module = tmp_path / "slow.py"
    interrupted = "import sys\nif sys.interrupts.pop():\n    raise KeyboardInterrupt\n"
    module.write_text(interrupted + module.read_text())
    script = """
        import sys
        sys.interrupts = [False, True]
        try:
            xp.devices()
        except KeyboardInterrupt:
            print(*xp.devices()[-2:])
        assert xp.devices()[0] == "cpu"
        assert not records
    """
    assert run(script, tmp_path).split() == ["another", "slow"]


@pytest.mark.parametrize("device", NAMES)
def test_random_programs(site, device):
    script = """
        from ggarray._runtime import plugins
        from random_programs import Program
        from ggarray_plugin_backends import faulty

        faulty.fault = "supports no outer product"
        for seed in range(40):
            Program(seed, "DEVICE").run(60)
        with np.errstate(all="ignore"):
            for seed in range(40, 60):
                Program(seed, "DEVICE", np.float64).run(25)
        assert "DEVICE" in plugins._streams or "DEVICE" == "null"
    """
    run(script.replace("DEVICE", device), site)


def test_random_programs_with_failures(site):
    script = """
        import random
        from random_programs import Program
        from ggarray_plugin_backends import faulty

        chance = random.Random(5)
        compute = faulty.FaultyBackend.graph_compute
        failed = []

        def sometimes(self, graph):
            faulty.fault = "failed" if chance.random() < 0.2 else ""
            failed.append(faulty.fault)
            return compute(self, graph)

        faulty.FaultyBackend.graph_compute = sometimes
        for seed in range(40):
            Program(seed, "faulty").run_recording_only(40)
        assert set(failed) == {"failed", ""}
    """
    run(script, site)


def test_the_reference_rounds_once(site):
    script = """
        from fractions import Fraction

        def product(a, b, dtype):
            a, b = (xp.asarray(each, dtype=dtype, device="reference") for each in (a, b))
            result = a @ b
            assert result.dtype == dtype
            return result

        # half a unit in the last place, and a little more: nearest is upwards. A sum that was
        # rounded to float32 in between has lost the little, and goes to the even neighbour.
        for dtype, digits in [(xp.float16, 10), (xp.bfloat16, 7), (xp.float32, 23)]:
            half = [2.0 ** -(digits // 2 + 1), 2.0 ** -(digits - digits // 2)]
            little = [2.0**-14, 2.0 ** -(14 if digits < 12 else 20)]
            a, b = zip([1.0, 1.0], half, little)
            assert float(product(a, b, dtype)) == 1 + 2.0**-digits, dtype
            assert float(product(a, [-each for each in b], dtype)) == -1 - 2.0**-digits, dtype
            assert float(product(a[:2], b[:2], dtype)) == 1, dtype
        rng = np.random.default_rng(1)
        parts = rng.standard_normal((4, 300)).astype(np.float32)
        re, im, other_re, other_im = ([Fraction(float(x)) for x in part] for part in parts)
        exact = [
            sum(a * c - b * d for a, b, c, d in zip(re, im, other_re, other_im)),
            sum(a * d + b * c for a, b, c, d in zip(re, im, other_re, other_im)),
        ]
        result = product(parts[0] + 1j * parts[1], parts[2] + 1j * parts[3], xp.complex64)
        assert complex(result) == complex(*(np.float32(float(part)) for part in exact))

        for dtype in (xp.int8, xp.uint8, xp.int32, xp.uint64):
            info = xp.iinfo(dtype)
            a, b = [info.max, info.max - 1, 3], [info.max, 5, info.max]
            exact = sum(x * y for x, y in zip(a, b))
            assert (int(product(a, b, dtype)) - exact) % 2**info.bits == 0

        top = product([3e38, 3e38, -3e38], [2.0, 2.0, 2.0], xp.float32)
        assert float(top) == float("inf")
        back = product([3e38, 3e38, -3e38], [1.0, 1.0, 1.0], xp.float32)
        assert abs(float(back) / 3e38 - 1) < 1e-6
        for dtype in (xp.float16, xp.bfloat16, xp.float32, xp.complex64):
            assert bool(xp.isnan(product([float("inf"), 1], [0, 1], dtype)))
            outer = xp.linalg.outer(*[xp.asarray([1, 2], dtype=dtype, device="reference")] * 2)
            assert np.asarray(outer, np.complex128).tolist() == [[1, 2], [2, 4]]

        weights = rng.integers(-126, 127, (5, 64))
        weights[:, ::32] = 127  # so that a block's scale is 1, and every weight exact
        x = rng.integers(-9, 9, (3, 64))
        quantized = xp.quantize(
            xp.asarray(weights, dtype=xp.float32, device="reference"), xp.q8_0
        )
        result = xp.asarray(x, dtype=xp.float32, device="reference") @ quantized.mT
        assert result.tolist() == (x @ weights.T).tolist()
        assert result.device == "reference"
    """
    run(script, site)


def test_who_computes(site):
    script = """
        from ggarray._runtime import plugins
        from ggarray_plugin_backends import faulty

        own = plugins.backend_devices()["faulty"]
        assert plugins.candidates("faulty") == ((own,), plugins.backend_devices()["cpu"])
        # plans are kept, with the answers of supports_op: each fault has a dtype of its own
        for fault, computed, dtype in [
            ("", 3, xp.int64),
            ("supports no outer product", 2, xp.int32),
            ("supports nothing", 0, xp.float64),
        ]:
            faulty.fault = fault
            a = xp.asarray([[1, 2], [3, 4]], dtype=dtype, device="faulty")
            own.backend.computed = 0
            chain = a @ a @ a + xp.linalg.outer(a[0], a[1])
            assert chain.device == "faulty"
            assert chain.tolist() == [[40, 58], [87, 126]]
            assert own.backend.computed == computed, fault

        idle = xp.ones((3, 3), device="null")
        assert (idle @ idle).tolist() == [[3.0] * 3] * 3
        assert "null" not in plugins._streams
    """
    run(script, site)


FAILING = {
    "failed": "xp.BackendError",
    "allocation failed": "MemoryError",
    "aborted": "KeyboardInterrupt",
    "raise": "OSError",
    "failed in the end": "xp.BackendError",
    "allocation failed in the end": "MemoryError",
    "aborted in the end": "KeyboardInterrupt",
    "raise in the end": "OSError",
}


FAILING_MEMORY = {
    "takes no tensors": "MemoryError",
    "cannot be written": "OSError",
    "cannot be read": "OSError",
}


@pytest.mark.parametrize(
    ("device", "fault", "error"),
    [
        *[("faulty", *each) for each in (FAILING | {"cannot map memory": "OSError"}).items()],
        *[("faulty:remote", *each) for each in (FAILING | FAILING_MEMORY).items()],
    ],
)
def test_a_failure_leaves_arrays_pending(site, device, fault, error):
    script = f"""
        from ggarray_plugin_backends import faulty

        A, B = np.asarray([[1.0, 2.0], [3.0, 4.0]]), np.asarray([[2.0, 0.0], [1.0, -1.0]])

        def fails(call):
            faulty.fault = {fault!r}
            for _ in range(2):
                try:
                    call()
                except {error} as raised:
                    assert type(raised) is {error}
                else:
                    raise AssertionError("no error")
            return True

        for remedy in ("", "supports no outer product", "supports nothing"):
            a, b = (xp.asarray(each, device="{device}") for each in (A, B))
            total = xp.zeros((2, 2), device="{device}")
            lone = b @ a
            chain = (a @ b).T @ a - xp.linalg.outer(a[0], b[1])
            total += chain
            for x in (lone, chain, total):
                assert fails(lambda: xp.evaluate(x))
                assert fails(lambda: np.asarray(x))
                assert xp.is_pending(x)
            assert fails(lambda: lone.to_device("cpu"))
            assert (a.tolist(), b.tolist()) == (A.tolist(), B.tolist())

            for device in ("reference", "cpu"):
                moved = a.to_device(device) @ b.to_device(device)
                np.testing.assert_array_equal(np.asarray(moved), A @ B)

            faulty.fault = remedy
            expected = (A @ B).T @ A - np.outer(A[0], B[1])
            np.testing.assert_array_equal(np.asarray(lone.to_device("reference")), B @ A)
            np.testing.assert_array_equal(np.asarray(total), expected)
            np.testing.assert_array_equal(np.asarray(chain), expected)

        with xp.options(lazy=False):
            assert fails(lambda: a @ b)
            faulty.fault = ""
            np.testing.assert_array_equal(np.asarray(a @ b), A @ B)
    """
    run(script, site)


def test_a_device_without_memory_left(site):
    script = """
        from ggarray_plugin_backends import faulty

        faulty.fault = "out of memory"
        a = xp.asarray([[1.0, 2.0], [3.0, 4.0]], device="faulty:remote")
        product = a @ a
        for _ in range(2):
            try:
                product.tolist()
            except MemoryError as error:
                assert "faulty:remote" in str(error)
            else:
                raise AssertionError("no error")
            assert xp.is_pending(product)
        faulty.fault = ""
        assert product.tolist() == [[7.0, 10.0], [15.0, 22.0]]
    """
    run(script, site)


def test_devices_of_plugins_do_not_mix(site):
    script = """
        a = xp.ones((2, 2), device="reference")
        for name in xp.devices():
            b = xp.full((2, 2), 3.0, device=name)
            if name != "reference":
                for left, right in ((a, b), (b, a)):
                    try:
                        left @ right
                    except ValueError as error:
                        assert "to_device" in str(error)
                    else:
                        raise AssertionError(name)
            product = a @ b.to_device("reference")
            assert product.device == "reference"
            assert product.tolist() == [[6.0, 6.0], [6.0, 6.0]]
            assert product.to_device(name).device == name
        with xp.default_device("reference") as device:
            assert xp.ones(2).device is device is xp.Device("reference")
        xp.set_default_device("null")
        assert xp.zeros(1).device == "null"
    """
    run(script, site)
    script = "assert xp.ones(1).device == 'reference'"
    run(script, site, GGARRAY_DEVICE="reference")


def test_pickles(site):
    script = """
        import base64, pickle
        x = xp.asarray([[1.5, -2.0]], device="faulty")
        again = pickle.loads(pickle.dumps(x))
        assert again.device is x.device and again.tolist() == x.tolist()
        print(base64.b64encode(pickle.dumps(x)).decode())
    """
    dump = run(script, site).strip()
    script = f"""
        import base64, pickle, warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x = pickle.loads(base64.b64decode("{dump}"))
        (warning,) = caught
        assert warning.category is xp.Warning
        assert x.device is xp.get_default_device()
        assert x.tolist() == [[1.5, -2.0]]
        print(warning.message)
    """
    absent = run(script, "")
    assert "'faulty'" in absent
    assert "left out" not in absent
    assert BROKEN["import"] in run(script, site, PLUGIN_FAULT="import")
    with pytest.warns(xp.Warning, match="'faulty'"):
        assert pickle.loads(base64.b64decode(dump)).tolist() == [[1.5, -2.0]]
