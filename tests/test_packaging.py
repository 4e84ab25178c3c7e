"""The distributions: what is in them, and that they install and import."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

import ggarray as xp

ROOT = Path(__file__).resolve().parents[1]


def run(*command, cwd, **environment):
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The sdist, and the wheel made from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    (sdist,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    return sdist, wheel


def test_sdist_has_what_a_build_needs(distributions):
    with tarfile.open(distributions[0]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {"backends/cpu/src/gg.h", "backends/blas/src/product.c", "LICENSE", "README.md"} <= names
    assert not [name for name in names if name.endswith((".so", ".o", ".pyc"))]


def test_wheel_has_only_what_runs(distributions):
    wheel = distributions[1]
    assert "abi3" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    packages = {name.split("/")[0] for name in names}
    assert packages == {"ggarray", f"ggarray-{xp.__version__}.dist-info"}
    assert "ggarray/py.typed" in names
    assert [name for name in names if name.startswith("ggarray/backends/cpu/_kernels")]
    assert not [name for name in names if name.endswith((".c", ".h"))]
    assert not [name for name in names if "/build_" in name]


def test_wheel_imports_from_anywhere(distributions, tmp_path):
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=False, symlinks=True)
    (site,) = (environment / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(distributions[1]) as archive:
        archive.extractall(site)
    (site / "outer.pth").write_text(str(Path(np.__file__).parents[1]))
    script = "import ggarray as xp; print(float((xp.ones((2, 3)) @ xp.ones(3))[1]))"
    python = environment / "bin" / "python"
    for folder in (tmp_path, ROOT):  # a checkout's ggarray/ hides the installed one
        assert run(python, "-c", script, cwd=folder, PYTHONPATH="") == "3.0\n"


def test_no_compiler_gives_one_sentence(distributions, tmp_path):
    with tarfile.open(distributions[0]) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", source],
        cwd=tmp_path,
        env={**os.environ, "CC": "/bin/false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "ggarray needs a C compiler" in said
    assert "setup.py" not in said[said.index("ggarray needs a C compiler") :]


def test_kernels_of_another_version_are_refused():
    script = (
        "import ggarray._version as v; v.__version__ = '0.0.0'\nimport ggarray as xp\nxp.ones(3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "ImportError" in done.stderr
    assert "reinstall" in done.stderr


def test_import_is_light():
    script = (
        "import sys, numpy; import ggarray\n"
        "heavy = {'scipy', 'ml_dtypes', 'tokenizers', 'graphviz', 'tqdm', 'threadpoolctl'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert run(sys.executable, "-c", script, cwd=ROOT) == "[]\n"
