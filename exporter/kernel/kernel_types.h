#pragma once

#include <istream>
#include <string>
#include <string_view>

namespace tacho::kernel {

/// Whether the running kernel has type information of its own. Without it libbpf finds members by a BTF file, but the
/// kernel accepts no program that it would check by type: tp_btf, fentry, fexit, iterators.
bool kernel_has_types();

/// Whether a list of the kernel's symbols has one of this name; true as well where the list is empty or cannot be read.
/// @param symbols in the format of /proc/kallsyms
bool has_symbol(std::string_view name, std::istream& symbols);

/// Whether that file is BTF, or an ELF file with some.
bool has_types(const std::string& btf_path);

/// Why a program cannot be attached, according to the kernel's type information and symbols: its section names a
/// tracepoint or function that the kernel does not have. This saves a try, which may take the verifier milliseconds,
/// and gives a clear reason whatever the privileges are.
/// @param section such as "tp_btf/sock_send_length", "fexit/inet_sendpage"
/// @param btf_path kernel BTF file; empty: the running kernel's own
/// @return empty if it may exist: it was found, or may be in a module, or is of a kind that types do not describe
std::string absent_target(std::string_view section, const std::string& btf_path);

/// Whether a structure of the kernel has a member of this name, not of one of its own structures.
/// @return false if the kernel has no types
bool has_member(const std::string& structure, std::string_view member, const std::string& btf_path);

/// Whether a task may be preempted within a program of a tracepoint: Linux 7.0 and later, where SRCU-fast guards the
/// programs' list instead of disabled preemption (include/linux/tracepoint.h, __DECLARE_TRACE).
/// @return false if the kernel has no types
bool has_preemptible_tracepoints();

/// Whether storage of tasks can be made under a run queue's lock: it has had an allocator of its own for that since
/// Linux 6.4 (08a7ce384e33); before, asking for memory could wake a thread of the kernel and lock up.
bool has_safe_task_storage(const std::string& btf_path);

/// Number of a function among the running kernel's own types; negative if there is none.
int function_id(const std::string& function);
/// The same for the type of a tracepoint's programs.
int tracepoint_id(const std::string& tracepoint);

/// Frees the data that these functions keep, seven megabytes. The next call reads it again. Not during such a call.
void forget_types();

}  // namespace tacho::kernel
