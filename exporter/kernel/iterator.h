#pragma once

#include <functional>
#include <span>

#include "base/result.h"
#include "kernel/bpf_object.h"

namespace tacho::kernel {

/// Runs an iterator program over all its objects and hands over what it wrote, in pieces of any size.
Result<void> run_iterator(const bpf_program* program, const std::function<void(std::span<const std::byte>)>& sink);

/// Hands a program of section "raw_tp" all keys of a map, eight bytes each, up to twelve at a time as its arguments;
/// what an iterator over the map does, for kernels that know none.
Result<void> run_over_keys(const bpf_program* program, int map);

/// Runs an iterator program for its effects only.
Result<void> run_iterator(const bpf_program* program);

/// Runs an iterator program over the elements of a map, for its effects only.
Result<void> run_map_iterator(const bpf_program* program, int map);

/// Starts an iterator program and reads nothing: it finds nothing then. @return why the kernel refuses to start it
Result<void> try_iterator(const bpf_program* program);
/// The same over the elements of a map.
Result<void> try_map_iterator(const bpf_program* program, int map);
/// Runs a program of section "raw_tp" once, without a key.
Result<void> run_over_no_keys(const bpf_program* program);

/// Runs an iterator program that writes records of one type.
template <class Record>
Result<std::vector<Record>> read_records(const bpf_program* program) {
  std::vector<std::byte> bytes;
  auto done = run_iterator(
      program, [&bytes](std::span<const std::byte> piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
  if (!done) {
    return std::unexpected(done.error());
  }
  std::vector<Record> records(bytes.size() / sizeof(Record));
  std::copy_n(bytes.begin(), records.size() * sizeof(Record), reinterpret_cast<std::byte*>(records.data()));
  return records;
}

}  // namespace tacho::kernel
