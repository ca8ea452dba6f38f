#pragma once

#include <cstddef>
#include <string>

#include "boundary/answer.h"

namespace tacho::scrape {

/// A growing page: in a string, or passed on piece by piece into memory, so that it is held only once.
class PageText {
 public:
  PageText() = default;
  explicit PageText(boundary::SealedText& out) : out_(&out) {}

  /// The end of the page, to append to. Throws std::system_error if memory does not suffice.
  std::string& end();
  [[nodiscard]] std::size_t size() const { return (out_ != nullptr ? out_->size() : 0) + buffer_.size(); }
  /// Takes back what was appended beyond that size.
  void cut(std::size_t size);
  /// Passes on what is left.
  void finish();
  /// All of it where there is no memory to be passed on.
  [[nodiscard]] std::string take() { return std::move(buffer_); }

 private:
  void flush();

  boundary::SealedText* out_ = nullptr;
  std::string buffer_;
};

}  // namespace tacho::scrape
