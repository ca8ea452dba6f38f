#include "scrape/page_text.h"

namespace tacho::scrape {
namespace {

constexpr std::size_t kPiece = std::size_t{256} << 10;

}  // namespace

std::string& PageText::end() {
  if (out_ != nullptr && buffer_.size() >= kPiece) {
    flush();
  }
  return buffer_;
}

void PageText::cut(std::size_t size) {
  const std::size_t passed_on = this->size() - buffer_.size();
  buffer_.resize(size > passed_on ? size - passed_on : 0);
  if (size < passed_on) {
    out_->cut(size);
  }
}

void PageText::finish() {
  if (out_ != nullptr) {
    flush();
  }
}

void PageText::flush() {
  out_->append(buffer_);
  buffer_.clear();
}

}  // namespace tacho::scrape
