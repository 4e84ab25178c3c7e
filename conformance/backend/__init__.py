"""What every backend computes, whoever wrote it; see ``docs/writing-a-backend.md``."""

import pytest

pytest.register_assert_rewrite("conformance.backend.computing", "conformance.backend.graphs")
