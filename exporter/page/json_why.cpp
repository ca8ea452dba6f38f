#include <nlohmann/json.hpp>

#include "page/json.h"
#include "page/json_parts.h"
#include "probes/slow_requests.h"

namespace tacho::page {
namespace {

using nlohmann::json;

json means_json(const scrape::MeanParts& mean) {
  return {{"requests", mean.requests}, {"mean", number(mean.seconds)}, {"parts", parts_json(mean.parts)}};
}

json period_json(const scrape::Waits& waits) {
  json period = means_json(waits.all);
  period.update({{"seconds", number(waits.seconds)},
                 {"rate", number(waits.requests / waits.seconds)},
                 {"running", number(waits.running)},
                 {"runnable", number(waits.runnable)},
                 {"throttled", number(waits.throttled)},
                 {"cores", number(waits.cores)}});
  return period;
}

json period_json(const std::optional<scrape::Waits>& waits) {
  return waits ? period_json(*waits) : json(nullptr);
}

json slow_json(const scrape::WaitHistory::Slow& slow) {
  json object = means_json(slow.mean);
  object["seconds"] = number(slow.seconds);
  object["threshold"] = slow.threshold > 0 ? number(slow.threshold) : json(nullptr);
  return object;
}

json part_name(const std::optional<request_part>& part) {
  return part ? json(probes::kPartNames.at(*part)) : json(nullptr);
}

json target_json(const scrape::WhyView::Target& target) {
  const scrape::Diagnosis& diagnosis = target.diagnosis;
  const scrape::Explanation& explanation = target.explanation;
  json cause = nullptr;
  if (diagnosis.cause) {
    cause = {{"name", explanation.cause},
             {"part", probes::kPartNames.at(diagnosis.cause->part)},
             {"seconds", number(diagnosis.cause->seconds)}};
  }
  json evidence = json::array();
  for (const scrape::Explanation::Evidence& each : explanation.evidence) {
    evidence.push_back({{"shows", each.shows}, {"query", each.query}});
  }
  return {{"id", target.id},
          {"target", target.name},
          {"verdict", explanation.verdict},
          {"cause", std::move(cause)},
          {"bottleneck", part_name(diagnosis.bottleneck)},
          {"sentence", explanation.sentence},
          {"doubts", explanation.doubts},
          {"next", explanation.next},
          {"now", period_json(diagnosis.periods.now)},
          {"slow", slow_json(diagnosis.periods.slow)},
          {"five_minutes", period_json(diagnosis.periods.five_minutes)},
          {"hour", period_json(diagnosis.periods.hour)},
          {"evidence", std::move(evidence)}};
}

}  // namespace

std::string why_json(const scrape::WhyView& view) {
  json document = time_json(view.time);
  document["targets"] = json::array();
  for (const scrape::WhyView::Target& target : view.targets) {
    document["targets"].push_back(target_json(target));
  }
  return text(document);
}

}  // namespace tacho::page
