#include "kernel/variants.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace tacho::kernel {
namespace {

std::vector<HookState> missing_hooks(const BpfObject& object) {
  std::vector<HookState> missing;
  std::ranges::copy_if(object.hooks(), std::back_inserter(missing),
                       [](const HookState& hook) { return !hook.attached(); });
  return missing;
}

std::string describe(const std::vector<HookState>& missing) {
  std::string text;
  for (const HookState& hook : missing) {
    text += (text.empty() ? "" : "; ") + std::string(hook.hook) + ": " + hook.error;
  }
  return text;
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
  std::size_t fewest = 0;
  std::string reasons;
  const auto blame = [&reasons](const Variant& variant, const std::string& why) {
    reasons += (reasons.empty() ? "" : "; ") + std::string(variant.name) + ": " + why;
  };
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
      blame(*variant, object.error().message);
      continue;
    }
    const auto missing = missing_hooks(**object);
    if (missing.empty()) {
      return object;
    }
    blame(*variant, describe(missing));
    if (best == nullptr || missing.size() < fewest) {
      best = variant;
      fewest = missing.size();
    }
  }
  return best != nullptr ? load(*best) : fail(reasons, EPERM);
}

}  // namespace tacho::kernel
