// Headers that choose the answer's form: Accept and Accept-Encoding, one behind the other, separated by a line feed.
#include <string>

#include "fuzzer.h"
#include "metrics/exposition.h"
#include "web/encoding.h"

using namespace tacho;
using fuzz::require;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string accept(text.substr(0, end));
  const std::string encoding(text.substr(std::min(end + 1, text.size())));
  const metrics::Format format = metrics::negotiate(accept);
  require(format == metrics::Format::prometheus_text || accept.find('/') != std::string::npos,
          "the other format is sent to who asked for something");
  require(
      format != metrics::Format::protobuf || (accept.find("io.prometheus.client.MetricFamily") != std::string::npos &&
                                              accept.find("delimited") != std::string::npos),
      "protobuf is sent to who named its message and its framing");
  require(metrics::negotiate(metrics::content_type(format)) == format, "who asks for what was sent gets it again");
  // What cannot be read says nothing, and takes nothing away from what stands in front of it.
  require(metrics::negotiate("application/openmetrics-text;version=1.0.0, " + accept) == metrics::Format::openmetrics ||
              accept.find_first_of("tTaA*") != std::string::npos,
          "an element is read whatever follows");
  if (web::accepts_gzip(encoding)) {
    require(encoding.find_first_of("gGxX*") != std::string::npos, "it is sent to who named it");
  }
  if (size < 4096) {
    const auto compressed = web::gzip(std::string(text));
    require(compressed && compressed->size() > 18, "what is compressed has gzip's frame");
  }
  return 0;
}
