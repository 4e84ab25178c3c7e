"""The array API standard 2025.12 as tests, a module a chapter; they need packages of PyPI alone.

Each module lists in ``COVERS`` the names whose behaviour it tests: "add", "linalg.qr",
"Array.__add__", "info.devices". `test_signatures` sees to it that no name of the standard is left.

Random examples are the same at every run. To look further, ``CONFORMANCE_EXAMPLES=500 python -m
pytest conformance/standard`` draws that many new ones a test.
"""
