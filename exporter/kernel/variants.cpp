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

/// Whether another variant knows other programs for one of these hooks.
bool may_help(const Variant& other, const Variant& loaded, const std::vector<HookState>& missing) {
  return std::ranges::any_of(missing, [&](const HookState& hook) {
    const auto of = [&hook](const Variant& variant) {
      const auto found = std::ranges::find(variant.hooks, hook.hook, &Hook::name);
      return found != variant.hooks.end() ? found->alternatives.data() : nullptr;
    };
    return of(other) != of(loaded);
  });
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
  std::unique_ptr<BpfObject> best;
  const Variant* chosen = nullptr;
  std::vector<HookState> lacks;
  std::string reasons;
  const auto blame = [&reasons](const Variant& variant, const std::string& why) {
    reasons += (reasons.empty() ? "" : "; ") + std::string(variant.name) + ": " + why;
  };
  for (const Variant* variant : candidates(variants, options.forced_method)) {
    if (best && !may_help(*variant, *chosen, lacks)) {
      continue;
    }
    auto object = BpfObject::load(variant->source, variant->hooks, options, setup);
    if (!object) {
      blame(*variant, object.error().message);
      continue;
    }
    auto missing = missing_hooks(**object);
    if (!missing.empty()) {
      blame(*variant, describe(missing));
    }
    if (!best || missing.size() < lacks.size()) {
      best = std::move(*object);
      chosen = variant;
      lacks = std::move(missing);
    }
    if (lacks.empty()) {
      break;
    }
  }
  if (!best) {
    return fail(reasons, EPERM);
  }
  best->note({"state", chosen->name, reasons});
  return best;
}

}  // namespace tacho::kernel
