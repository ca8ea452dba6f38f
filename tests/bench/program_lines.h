#pragma once

namespace tacho::bench {

/// Prints where the kernel's compiler put the lines of all loaded programs: "@@function ADDRESS LENGTH PROGRAM
/// [called]" for each function ("called": not the first of its program), "@@line ADDRESS FILE:LINE SOURCE" for the
/// first instruction of each line. Programs without line information are left out. Needs
/// /proc/sys/net/core/bpf_jit_harden below 2.
void print_program_lines();

}  // namespace tacho::bench
