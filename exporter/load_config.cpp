#include "load_config.h"

#include <algorithm>
#include <iterator>

#include "scrape/families.h"

namespace tacho {

config::Loaded load_config(const std::string& path) {
  config::Loaded loaded = config::load_file(path);
  std::ranges::move(scrape::pointless_drops(loaded.config), std::back_inserter(loaded.warnings));
  return loaded;
}

}  // namespace tacho
