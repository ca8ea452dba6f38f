#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacho::metrics {

inline constexpr std::size_t kMaxVarint = 10;
/// Writes a number as append_varint() does to `out`, which has room for kMaxVarint characters; returns the end.
char* write_varint(char* out, std::uint64_t value);
/// Writes a `double` to `out`, eight bytes, the lowest first; returns the end.
char* write_fixed64(char* out, double value);
/// The number that stands for a signed one in `sint32` and `sint64`: 0, -1, 1, -2 … become 0, 1, 2, 3 …
constexpr std::uint64_t zigzag(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1U ^ (value < 0 ? ~std::uint64_t{0} : 0);
}

/// Appends a number as protobuf's variable-length integers are: seven bits a byte, the lowest first.
void append_varint(std::string& out, std::uint64_t value);

/// Appends the fields of one protobuf message to a string. It is written by hand, which takes less code than making
/// libprotobuf write the same: four kinds of fields, whose numbers are known when compiled. A generated class would
/// hold every target's values a second time before they are written, and would be one more library to be attacked.
class Protobuf {
 public:
  explicit Protobuf(std::string& out) : out_(out) {}

  /// uint32, uint64, int64 that is not negative, enum.
  void integer(unsigned field, std::uint64_t value) {
    tag(field, kVarint);
    append_varint(out_, value);
  }
  /// sint32, sint64.
  void signed_integer(unsigned field, std::int64_t value) {
    tag(field, kVarint);
    append_varint(out_, zigzag(value));
  }
  void real(unsigned field, double value);
  /// string; bytes that are no UTF-8 become U+FFFD, as in the text formats.
  void text(unsigned field, std::string_view value);
  /// A message, or repeated numbers in one (`packed`): what `fill()` appends to the same string.
  template <class Fill>
  void message(unsigned field, Fill fill) {
    tag(field, kBytes);
    const std::size_t at = out_.size();
    out_ += '\0';
    fill();
    set_length(at);
  }

 private:
  static constexpr unsigned kVarint = 0;
  static constexpr unsigned kFixed64 = 1;
  static constexpr unsigned kBytes = 2;

  void tag(unsigned field, unsigned wire_type) {
    const unsigned tag = field << 3U | wire_type;
    if (tag < 0x80) {
      out_ += static_cast<char>(tag);
    } else {
      append_varint(out_, tag);
    }
  }
  /// Puts the length of what is behind `at` there, where one byte has been left for it.
  void set_length(std::size_t at);

  std::string& out_;
};

}  // namespace tacho::metrics
