"""Where things are: the repository, the build under test and its helper programs."""

import os
import pathlib

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("TACHO_BUILD", REPOSITORY / "build" / "release"))
TACHO = BUILD / "tacho"
TACHO_WITH_HOLE = BUILD / "tests" / "hole" / "tacho_with_hole"
EXACT_SERVER = BUILD / "tests" / "support" / "exact_server"
EXACT_CLIENT = BUILD / "tests" / "support" / "exact_client"
URING_SERVER = BUILD / "tests" / "support" / "uring_server"
OPEN_LOOP_CLIENT = BUILD / "tests" / "support" / "open_loop_client"
FAULT_PROXY = BUILD / "tests" / "support" / "fault_proxy"


def require(program: pathlib.Path) -> str:
    """The program's path, or an error that says how to get it."""
    if not os.access(program, os.X_OK):
        raise FileNotFoundError(f"{program} is not built: cmake --build --preset release (or set TACHO_BUILD)")
    return str(program)
