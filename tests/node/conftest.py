"""An engine with the images of tacho, of the build under test, and of the exact server. Without one every test says so and
is skipped."""

import os
import pathlib
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import engine as engines  # noqa: E402
from support import image  # noqa: E402
from support.privilege import why_not  # noqa: E402

LONG = os.environ.get("TACHO_SKIP_SLOW", "") in ("", "0")


@pytest.fixture(scope="session")
def starts() -> int:
    """How often something is started anew."""
    return 20 if LONG else 10


@pytest.fixture(scope="session")
def churn() -> int:
    """How many containers come and go."""
    return 250 if LONG else 12


@pytest.fixture
def long_only():
    """For what waits for minutes."""
    if not LONG:
        pytest.skip("takes long: TACHO_SKIP_SLOW is set")


@pytest.fixture(scope="session", params=engines.RELEASES)
def engine(request):
    """Docker's engine of a Debian, which ends with the run."""
    if reason := why_not() or engines.why_not(request.param):
        pytest.skip(reason)
    with engines.Engine(request.param) as running, tempfile.TemporaryDirectory() as directory:
        for name, build in (("tacho", image.build_from_tree), ("exact_server", image.build_exact_server),
                            ("pause", image.build_pause)):
            (pathlib.Path(directory) / name).mkdir()
            build(running, pathlib.Path(directory) / name, name)
        print(f"Docker {running.version}")
        yield running
