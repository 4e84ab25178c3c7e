"""Every case, of which a device computes what it says it supports."""

from zlib import crc32

import pytest

from conformance.backend.cases import CASES
from conformance.backend.computing import check_case, is_in_tree
from ggarray._runtime.plugins import stream


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernel(device, case, tally, nmse):
    def count(takes):
        tally[device.name, case.op, case.dtype, takes] += 1

    taken = check_case(device, stream, case, crc32(str(case).encode()), count, nmse)
    if not taken and not is_in_tree(device):
        pytest.skip(f"{device.name} leaves it to others")
