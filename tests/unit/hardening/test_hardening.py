"""The program's own bytes: what exporter/cmake/Hardening.cmake asked for is in them, civetweb's part included."""

import functools
import os
import platform
import re

import pytest

from support.paths import TACHO, require
from support.process import run

PAGE = 4096
X86 = platform.machine() == "x86_64"

pytestmark = pytest.mark.skipif(
    os.environ.get("TACHO_HARDENED", "ON") != "ON", reason="built without optimization or with sanitizers: not hardened"
)


@functools.cache
def output(*command: str) -> str:
    return run([*command, require(TACHO)], timeout=60)


def readelf(option: str) -> str:
    return output("readelf", "--wide", option)


@functools.cache
def functions() -> dict[str, list[str]]:
    """Instructions of each function, by its mangled name."""
    found: dict[str, list[str]] = {}
    body: list[str] = []
    for line in output("objdump", "--disassemble", "--no-show-raw-insn").splitlines():
        if match := re.match(r"[0-9a-f]+ <(.+)>:$", line):
            body = found.setdefault(match[1], [])
        elif re.match(r" +[0-9a-f]+:", line):
            body.append(" ".join(line.split(":", 1)[1].split()))
    return found


def segment(name: str) -> list[str]:
    lines = [line.split() for line in readelf("--program-headers").splitlines() if line.split()[:1] == [name]]
    assert len(lines) == 1, f"segments {name}: {lines}"
    return lines[0]


def test_it_may_lie_anywhere():
    assert re.search(r"Type: +DYN \(Position-Independent Executable", readelf("--file-header"))
    assert "PIE" in dynamic("FLAGS_1")
    assert "(TEXTREL)" not in readelf("--dynamic")


def dynamic(tag: str) -> str:
    (line,) = [line for line in readelf("--dynamic").splitlines() if f"({tag})" in line]
    return line.split(")", 1)[1]


def test_its_table_of_addresses_is_bound_at_the_start_and_read_only():
    assert "BIND_NOW" in dynamic("FLAGS") and "NOW" in dynamic("FLAGS_1")
    assert segment("GNU_RELRO")
    sections = readelf("--sections")
    assert re.search(r" \.got +PROGBITS", sections)
    # Lazy binding would write to it all the time that the program runs.
    assert not re.search(r" \.got\.plt +PROGBITS", sections) or "R_X86_64_JUMP_SLO" not in sections
    relro = segment("GNU_RELRO")
    begin, size = int(relro[2], 16), int(relro[5], 16)
    (got,) = re.findall(r" \.got +PROGBITS +([0-9a-f]+) [0-9a-f]+ ([0-9a-f]+)", sections)
    assert begin <= int(got[0], 16) and int(got[0], 16) + int(got[1], 16) <= begin + size, "outside of RELRO"


def test_no_memory_is_writable_and_executable():
    assert "E" not in "".join(segment("GNU_STACK")[6:-1])
    for line in readelf("--program-headers").splitlines():
        if line.split()[:1] == ["LOAD"]:
            flags = "".join(line.split()[6:-1])
            assert not ("W" in flags and "E" in flags), line


def test_stacks_are_guarded():
    imported = re.findall(r" UND (\w+)", readelf("--dyn-syms"))
    assert "__stack_chk_fail" in imported
    guarded = [name for name, body in functions().items() if any("__stack_chk_fail" in line for line in body)]
    assert "mg_parse_request_head" in functions(), "civetweb is in it"
    assert len(guarded) > 500, f"only {len(guarded)} functions are"
    assert any("tacho3web4Gate" in name for name in guarded)


def test_functions_of_libc_are_told_how_large_a_buffer_is():
    checked = {name for name in re.findall(r" UND (\w+)", readelf("--dyn-syms")) if name.endswith("_chk")}
    assert len(checked - {"__stack_chk_fail"}) >= 4, sorted(checked)


def test_no_frame_leaps_over_the_guard_page():
    leap = re.compile(r"sub \$0x([0-9a-f]+),%rsp" if X86 else r"sub sp, sp, #0x([0-9a-f]+)$")
    # GCC for arm64 counts on a guard of 64 KiB, as its ABI has it.
    most = PAGE if X86 else 16 * PAGE
    leaps = {name: size for name, body in functions().items() for line in body
             if (match := leap.match(line)) and most < (size := int(match[1], 16)) < 1 << 31}  # fmt: skip
    assert not leaps
    if X86:
        probes = [name for name, body in functions().items() if "orq $0x0,(%rsp)" in body]
        assert any("tacho3web4Gate5drain" in name for name in probes), "16 KiB in a frame, and none of its pages is touched"


def test_jumps_and_returns_are_watched():
    if X86:
        assert "SHSTK" in readelf("--notes"), "not marked for shadow stacks"
        landing = "endbr64"
    else:
        landing = "paciasp"
    # Not those that are only called by name within their file: nobody can jump there.
    landed = [name for name, body in functions().items() if body and body[0].startswith((landing, "bti"))]
    assert {"main", "mg_parse_request_head"} <= set(landed)
    assert len(landed) > 1000, f"only {len(landed)} functions are"


def test_of_civetweb_only_what_is_called_is_in_it():
    """Its own server, with sockets, TLS and threads, would be code that nobody tests here."""
    found = {name for name in functions() if name.startswith("mg_")}
    assert "mg_parse_request_head" in found and "mg_start" not in found
    assert len(found) < 20, sorted(found)
