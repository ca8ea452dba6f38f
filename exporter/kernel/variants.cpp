#include "kernel/variants.h"

#include <algorithm>
#include <vector>

namespace tacho::kernel {
namespace {

std::ptrdiff_t missing_hooks(const BpfObject& object) {
  return std::ranges::count_if(object.hooks(), [](const HookState& hook) { return !hook.attached(); });
}

/// All variants if none offers the method: hooks then keep what they know.
std::vector<const Variant*> candidates(std::span<const Variant> variants, const std::string& forced) {
  std::vector<const Variant*> all;
  std::vector<const Variant*> offering;
  for (const Variant& variant : variants) {
    all.push_back(&variant);
    if (AttachPlan(variant.hooks, forced).offers_forced()) {
      offering.push_back(&variant);
    }
  }
  return offering.empty() ? all : offering;
}

}  // namespace

Result<std::unique_ptr<BpfObject>> load_best(std::span<const Variant> variants, const LoadOptions& options,
                                             const BpfObject::Setup& setup) {
  const Variant* best = nullptr;
  std::ptrdiff_t fewest = 0;
  std::string reasons;
  const auto load = [&](const Variant& variant) {
    auto object = BpfObject::load(variant.source, variant.hooks, options, setup);
    if (object) {
      (*object)->note({"state", variant.name, reasons});
    }
    return object;
  };
  for (const Variant* variant : candidates(variants, options.forced_method)) {
    auto object = load(*variant);
    if (!object) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(variant->name) + ": " + object.error().message;
      continue;
    }
    const auto missing = missing_hooks(**object);
    if (missing == 0) {
      return object;
    }
    if (best == nullptr || missing < fewest) {
      best = variant;
      fewest = missing;
    }
  }
  return best != nullptr ? load(*best) : fail(reasons, EPERM);
}

}  // namespace tacho::kernel
