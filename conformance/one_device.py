"""A plugin of pytest: of the tests that take a device, only those of ``GGARRAY_DEVICE`` stay."""

import os

import pytest


def _device(item: pytest.Item) -> str | None:
    return item.callspec.params.get("device") if hasattr(item, "callspec") else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests of other devices."""
    wanted = (None, os.environ["GGARRAY_DEVICE"])
    others = [item for item in items if _device(item) not in wanted]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if _device(item) in wanted]
