#include "base/version.h"

namespace tacho {

std::string_view version() {
  return TACHO_VERSION;
}

}  // namespace tacho
