#include <ostream>

#include "app.h"
#include "base/utf8.h"
#include "kernel/statistics.h"
#include "metrics/exposition.h"
#include "scrape/target_view.h"
#include "scrape/views.h"

// What `tacho plan` prints.

namespace tacho {

void App::describe(std::ostream& out) {
  out << "hooks:\n";
  for (const kernel::BpfObject* object : objects_) {
    for (const kernel::HookState& hook : object->hooks()) {
      out << "  " << object->name() << "." << hook.hook << ": " << hook.method;
      out << (hook.error.empty() ? "" : "  (" + hook.error + ")") << "\n";
    }
  }
  out << "programs, as the verifier of this kernel has worked through them:\n";
  for (const kernel::BpfObject* object : objects_) {
    for (const kernel::ProgramStatistics& program : kernel::program_statistics(*object)) {
      out << "  " << program.program << ": ";
      out << program.verified << " instructions, " << program.translated << " bytes of BPF, " << program.compiled
          << " of machine code\n";
    }
  }
  for (const std::string& failed : failed_probes_) {
    out << "  " << failed << ": cannot be loaded, left out\n";
  }
  const auto targets = scraper_->view(scrape::summaries);
  out << "targets: " << targets.size() << "\n";
  for (const scrape::TargetSummary& target : targets) {
    out << "  " << printable(target.name);
    for (const auto& [name, value] : target.labels) {
      if (name != "target") {
        out << " " << name << "=" << printable(value);
      }
    }
    out << "  (" << target.cgroups << " cgroups, " << target.processes << " processes)\n";
  }
  for (const std::string& name : absent()) {
    out << "  " << name << "  (matches nothing yet)\n";
  }
  const std::string exposition = scraper_->scrape(metrics::Format::prometheus_text);
  std::size_t series = 0;
  for (std::size_t at = 0; at < exposition.size(); at = exposition.find('\n', at) + 1) {
    if (exposition[at] != '#') {
      ++series;
    }
  }
  out << "series: " << series << ", " << exposition.size() << " bytes\n";
}

}  // namespace tacho
