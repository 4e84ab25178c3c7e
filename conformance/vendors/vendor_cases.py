"""A plugin of pytest: of the kernels of the suite for backends, a half of what libraries compute.

A library has float and complex products alone. What becomes of the others does not depend on it,
and ``make test`` tries them with the device ``blas``.
"""

from zlib import crc32

import pytest

from conformance.backend.cases import QUANTIZED
from conformance.vendors.products import DTYPES
from ggarray.interface import Op


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--half", type=int, choices=(0, 1), help="of the kernels, which half stays")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the other kernels."""
    half = config.getoption("--half")

    def stays(item: pytest.Item) -> bool:
        case = item.callspec.params.get("case") if hasattr(item, "callspec") else None
        if case is None:
            return True
        computed = case.op is Op.MATMUL and (str(case.dtype) in DTYPES or case.dtype in QUANTIZED)
        return computed and crc32(str(case).encode()) % 2 == half

    config.hook.pytest_deselected(items=[item for item in items if not stays(item)])
    items[:] = filter(stays, items)
