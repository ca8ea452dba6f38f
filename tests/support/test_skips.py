"""Whether a skipped test is found in ctest's log, whoever skipped it, and is refused unless its reason is listed."""

import pathlib

import pytest

from support import skips

LOG = """1/4 Test #9: unit.base ....................   Passed    0.01 sec
2/4 Test #1: e2e.page .....................***Skipped   0.10 sec
 3/4 Test #12: kernel.poll ..................***Skipped   0.00 sec
Start testing: Nov 24 12:00 UTC
----------------------------------------------------------
1/4 Testing: e2e.page
1/4 Test: e2e.page
Command: "python3"
Output:
----------------------------------------------------------
SKIPPED [1] tests/e2e/test_page.py:34: Playwright cannot be had: offline
=== 1 skipped in 0.1s ===
<end of output>
Test Passed.
----------------------------------------------------------
2/4 Testing: kernel.sched
2/4 Test: kernel.sched
Output:
----------------------------------------------------------
../sched_test.cpp:1: warning:
  skipped: nothing waits for a disk in "/tmp", which is in memory

All tests passed (1 assertion in 1 test case)
<end of output>
Test Passed.
----------------------------------------------------------
3/4 Testing: kernel.poll
3/4 Test: kernel.poll
Output:
----------------------------------------------------------
kernel tests are skipped: no root
<end of output>
Test Passed.
----------------------------------------------------------
4/4 Testing: unit.base
4/4 Test: unit.base
Output:
----------------------------------------------------------
All tests passed
<end of output>
Test Passed.
"""

ALL = [
    "e2e.page: Playwright cannot be had: offline",
    'kernel.sched: nothing waits for a disk in "/tmp", which is in memory',
    "kernel.poll: kernel tests are skipped: no root",
]


def test_skips_are_found_whoever_tells_of_them():
    assert skips.skips(LOG) == ALL


def test_a_reason_that_is_not_listed_is_refused(tmp_path, capsys):
    (tmp_path / "log").write_text(LOG)
    (tmp_path / "list").write_text("# some\ne2e\\..*: Playwright  no registry\nkernel\\.sched: nothing waits  memory\n")
    assert skips.main(str(tmp_path / "list"), str(tmp_path / "log"))
    assert capsys.readouterr().out == f"MAY NOT BE SKIPPED {ALL[2]}\n"
    with open(tmp_path / "list", "a") as file:
        file.write("kernel\\.poll: .*no root  nobody\n")
    assert not skips.main(str(tmp_path / "list"), str(tmp_path / "log"))


def test_an_expression_without_a_reason_is_refused():
    with pytest.raises(SystemExit, match="no reason"):
        skips.allowed("e2e\\..*\n")


def test_root_may_not_be_missed():
    listed = skips.allowed((pathlib.Path(__file__).resolve().parents[1] / "skips").read_text())
    for skip in ALL[2:] + ["e2e.top: needs root: BPF programs are loaded and cgroups made", "e2e.package: no package without help2man"]:
        assert not any(pattern.match(skip) for pattern in listed), skip
    for skip in ALL[:2]:
        assert any(pattern.match(skip) for pattern in listed), skip
