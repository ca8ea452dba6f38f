#pragma once

#include <string>

namespace tacho {

/// The options of `tacho top`, `tacho slow` and `tacho why`; the order is that of top's table.
struct TopOptions {
  std::string url = "http://127.0.0.1:9435";
  std::string password_file;  ///< holds the password of the user in the URL; empty: it is in the URL
  std::string ca_file;        ///< certificates to trust; empty: the system's
  std::string sort = "rate";
  std::string filter;
  bool once = false;  ///< print the table and end
  bool json = false;  ///< print the data and end
};

}  // namespace tacho
