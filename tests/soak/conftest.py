"""Makes the package `support` importable; root and a kernel with BTF are needed, as for the end-to-end tests."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support.privilege import why_not  # noqa: E402


def pytest_collection_modifyitems(items):
    if reason := why_not():
        for item in items:
            item.add_marker(pytest.mark.skip(reason=reason))
