#include "top/frame.h"

#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace tacho::top {
namespace {

using nlohmann::json;

double number(const json& object, const char* name) {
  const json& value = object.at(name);
  return value.is_null() ? Row::kUnknown : value.get<double>();
}

Row parse_row(const json& object) {
  Row row;
  row.id = object.at("id").get<std::string>();
  row.name = printable(object.at("target").get<std::string>());
  for (const auto& [label, value] : object.at("labels").items()) {
    row.name += " " + printable(label) + "=" + printable(value.get<std::string>());
  }
  row.name += object.at("live").get<bool>() ? "" : " (ended)";
  row.rate = number(object, "rate");
  row.last = number(object, "last_rate");
  row.p50 = number(object, "p50");
  row.p99 = number(object, "p99");
  row.saturation = number(object, "saturation");
  row.queue_share = number(object, "queue_share");
  row.idle_share = number(object, "idle_share");
  if (const json& in_flight = object.at("in_flight"); !in_flight.is_null()) {
    row.in_flight = in_flight.get<std::uint64_t>();
  }
  for (const json& condition : object.at("conditions")) {
    row.conditions += (row.conditions.empty() ? "" : " ") + printable(condition.get<std::string>());
  }
  const auto peers = object.at("peers").get<std::uint64_t>();
  if (!object.at("dependencies").empty()) {
    row.calls_to = printable(object.at("dependencies").front().at("peer").get<std::string>());
    row.calls_to += peers > 1 ? " +" + std::to_string(peers - 1) : "";
  }
  return row;
}

}  // namespace

std::unexpected<Error> not_a_tacho() {
  return fail("the answer is not what this tacho understands: is it another program, or another version of tacho?");
}

Result<Frame> parse_frame(const std::string& body) {
  try {
    const json document = json::parse(body);
    Frame frame;
    frame.instance = document.at("instance").get<std::string>();
    frame.version = printable(document.at("version").get<std::string>());
    frame.tick = document.at("tick").get<std::uint64_t>();
    frame.targets = document.at("targets").get<std::uint64_t>();
    frame.matched = document.at("matched").get<std::uint64_t>();
    frame.rate = number(document, "rate");
    frame.lost_events = document.at("lost_events").get<std::uint64_t>();
    frame.unattached_hooks = document.at("unattached_hooks").get<std::uint64_t>();
    for (const json& name : document.at("absent")) {
      frame.absent.push_back(printable(name.get<std::string>()));
    }
    for (const json& row : document.at("rows")) {
      frame.rows.push_back(parse_row(row));
    }
    return frame;
  } catch (const json::exception&) {
    return not_a_tacho();
  }
}

}  // namespace tacho::top
