#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "boundary/question.h"

namespace tacho::boundary {

enum class Status : std::uint8_t {
  done,     ///< with the text that was asked for; of a reload: the configuration is in use
  missing,  ///< there is no such target
  failed,   ///< could not be made; the log has the details
  busy,     ///< of a reload: another one is under way
  timeout,  ///< of a reload: not done in time
};

/// Anonymous memory that is written once and then sealed: a process with its descriptor can read it, none can change
/// it.
class SealedText {
 public:
  SealedText() = default;
  static Result<SealedText> create();

  /// All or nothing: throws std::system_error if memory does not suffice.
  void append(std::string_view text);
  /// Takes back what was appended beyond that size.
  void cut(std::size_t size);
  [[nodiscard]] std::size_t size() const { return size_; }

  Result<void> seal();
  [[nodiscard]] const UniqueFd& descriptor() const { return fd_; }

 private:
  explicit SealedText(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
  std::size_t size_ = 0;
};

/// The text behind such a descriptor, which cannot change or shrink under its reader.
class MappedText {
 public:
  MappedText() = default;
  /// An error if the memory is not sealed.
  static Result<MappedText> map(const UniqueFd& sealed);

  [[nodiscard]] std::string_view view() const { return view_; }
  /// Keeps the text.
  [[nodiscard]] std::shared_ptr<const void> owner() const { return owner_; }

 private:
  std::shared_ptr<const void> owner_;
  std::string_view view_;
};

struct Answer {
  Status status = Status::failed;
  MappedText text;
};

/// The collector, as the web process sees it: questions go in, finished text comes out. Thread-safe.
class Collector {
 public:
  Collector() = default;
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  virtual ~Collector() = default;

  /// Waits for the answer. An error: the collector has ended.
  virtual Result<Answer> ask(const Question& question) = 0;
};

}  // namespace tacho::boundary
