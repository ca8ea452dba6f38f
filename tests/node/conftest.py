"""An engine with the images of tacho, of the build under test, and of the exact server.

A test may be skipped where the machine cannot do what it needs, and says so. All else that is missing fails it: on a
machine that could run them, tests that do not run would look like tests that pass.
"""

import os
import pathlib
import re
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from support import engine as engines  # noqa: E402
from support import image  # noqa: E402
from support import slow  # noqa: E402
from support.privilege import why_not  # noqa: E402

# Reasons of the machine's own. Packages are none: tests/run installs them.
MAY_BE_MISSING = "|".join((
    "needs root: ",
    "needs a kernel with BTF: ",
    "needs to make cgroups: ",
    "no cgroup v2 hierarchy is mounted",
    r"the engine of \w+ is not there: ",  # no mirror has it, as node.engines said
    "takes long: ",
    slow.NO_TIME,
))  # fmt: skip


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.skipped and not hasattr(report, "wasxfail") and not re.match(f"Skipped: (?:{MAY_BE_MISSING})", report.longrepr[2]):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} may not be skipped on this machine: {report.longrepr[2]}"


@pytest.fixture(scope="session")
def starts() -> int:
    """How often something is started anew."""
    return int(os.environ.get("TACHO_NODE_STARTS", 6 if slow.SKIPPED else 20))


@pytest.fixture(scope="session")
def churn() -> int:
    """How many containers come and go."""
    return int(os.environ.get("TACHO_NODE_CHURN", 12 if slow.SKIPPED else 250))


@pytest.fixture
def long_only():
    """For what waits for minutes."""
    if slow.SKIPPED:
        pytest.skip("takes long: TACHO_SKIP_SLOW is set")


@pytest.fixture(
    scope="session",
    params=slow.slow_but([engines.INSTALLED], engines.RELEASES, "takes long: the engine of another Debian"),
)
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
