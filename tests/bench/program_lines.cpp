#include "program_lines.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace tacho::bench {
namespace {

void print_lines(int program) {
  bpf_prog_info counts{};
  std::uint32_t size = sizeof(counts);
  if (bpf_obj_get_info_by_fd(program, &counts, &size) != 0 || counts.nr_line_info == 0 ||
      counts.nr_line_info != counts.nr_jited_line_info) {
    return;
  }
  std::vector<bpf_line_info> lines(counts.nr_line_info);
  std::vector<std::uint64_t> addresses(counts.nr_jited_line_info);
  std::vector<std::uint64_t> functions(counts.nr_jited_ksyms);
  std::vector<std::uint32_t> lengths(counts.nr_jited_func_lens);
  bpf_prog_info info{};
  info.nr_line_info = counts.nr_line_info;
  info.line_info_rec_size = sizeof(bpf_line_info);
  info.line_info = reinterpret_cast<std::uintptr_t>(lines.data());
  info.nr_jited_line_info = counts.nr_jited_line_info;
  info.jited_line_info_rec_size = sizeof(std::uint64_t);
  info.jited_line_info = reinterpret_cast<std::uintptr_t>(addresses.data());
  info.nr_jited_ksyms = counts.nr_jited_ksyms;
  info.jited_ksyms = reinterpret_cast<std::uintptr_t>(functions.data());
  info.nr_jited_func_lens = counts.nr_jited_func_lens;
  info.jited_func_lens = reinterpret_cast<std::uintptr_t>(lengths.data());
  size = sizeof(info);
  if (bpf_obj_get_info_by_fd(program, &info, &size) != 0) {
    return;
  }
  btf* types = btf__load_from_kernel_by_id(info.btf_id);
  if (types == nullptr) {
    return;
  }
  for (std::size_t i = 0; i < functions.size(); ++i) {
    std::printf("@@function %llx %u %s%s\n", static_cast<unsigned long long>(functions[i]), lengths[i], info.name,
                i == 0 ? "" : " called");
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string file = btf__name_by_offset(types, lines[i].file_name_off);
    std::printf("@@line %llx %s:%u %s\n", static_cast<unsigned long long>(addresses[i]),
                file.substr(file.rfind('/') + 1).c_str(), BPF_LINE_INFO_LINE_NUM(lines[i].line_col),
                btf__name_by_offset(types, lines[i].line_off));
  }
  btf__free(types);
}

}  // namespace

void print_program_lines() {
  std::uint32_t id = 0;
  while (bpf_prog_get_next_id(id, &id) == 0) {
    const UniqueFd program(bpf_prog_get_fd_by_id(id));
    if (program) {
      print_lines(program.get());
    }
  }
}

}  // namespace tacho::bench
