"""Unpacks Debian's builds of BLAS into a folder; nothing is installed, and root is not needed.

``python -m conformance.vendors.debian FOLDER`` downloads what FOLDER does not have yet. It never
fails: why a package is not there is in the file that `failure` reads.
"""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

RUNTIME = {
    "libquadmath0": "usr/lib/*/libquadmath.so.0",
    "libgfortran5": "usr/lib/*/libgfortran.so.5",
    "libgomp1": "usr/lib/*/libgomp.so.1",
}
"""What the libraries need: packages and a file of each, after those that it needs itself."""

PACKAGES = (
    "libopenblas0-pthread",
    "libopenblas0-openmp",
    "libopenblas0-serial",
    "libopenblas64-0-pthread",
    "libblis4-pthread",
    "libblis4-openmp",
    "libblis64-4-pthread",
    "libatlas3-base",
    "libblas3",
    "libblas64-3",
)

_SECONDS = 120  # for one command

# The hooks that are cleared tidy the system's folders, which takes root. To drop privileges for
# downloads takes a folder that another user may enter, and root.
_CONFIGURATION = """\
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Retries "1";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
"""
_OWN_LISTS = """\
Dir::State::lists "{folder}/lists";
Dir::Cache "{folder}/cache";
"""


def failure(folder: Path, package: str) -> str:
    """Return why a package could not be unpacked into a folder, empty if it could."""
    record = _record(folder, package)
    return record.read_text() if record.exists() else ""


def provide(folder: Path) -> None:
    """Unpack the packages that are not there, each to a folder of its name; print what came of it.

    The lists of packages that the system has may be missing or outdated, so that those which fail
    are tried again with fresh ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "apt.conf"
    configuration.write_text(_CONFIGURATION)
    missing = _unpack((*RUNTIME, *PACKAGES), folder, configuration)
    if missing:
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        configuration.write_text(_CONFIGURATION + _OWN_LISTS.format(folder=folder))
        outdated = _complaint("apt-get", "--config-file", configuration, "update")
        missing = _unpack(missing, folder, configuration)
        for package, why in missing.items():
            why = "; ".join(dict.fromkeys(filter(None, [outdated, why])))
            _record(folder, package).write_text(why)
            print(f"{package}: not to be had: {why}")


def _unpack(packages: Iterable[str], folder: Path, configuration: Path) -> dict[str, str]:
    """Unpack packages; return those for which that fails, and why."""
    missing = {}
    for package in packages:
        if (folder / package).is_dir():  # whole, as it was moved there
            print(f"{package}: is there")
            continue
        with TemporaryDirectory(dir=folder) as name:
            scratch = Path(name)
            download = ("apt-get", "--config-file", configuration, "download", package)
            why = _complaint(*download, cwd=scratch)
            for archive in scratch.glob("*.deb"):
                why = _complaint("dpkg", "--extract", archive, scratch / package)
            if why:
                missing[package] = why
                continue
            (scratch / package).rename(folder / package)
        _record(folder, package).unlink(missing_ok=True)
        print(f"{package}: unpacked", flush=True)
    return missing


def _record(folder: Path, package: str) -> Path:
    return folder / f"{package}.failed"


def _complaint(*command: str | Path, cwd: Path | None = None) -> str:
    """Run a command; return the first of its complaints if it fails, else nothing."""
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    complaints = [line for line in done.stderr.splitlines() if line.startswith(("E: ", "dpkg"))]
    return complaints[0] if complaints else f"{command[0]} fails with status {done.returncode}"


if __name__ == "__main__":
    provide(Path(sys.argv[1]).resolve())
