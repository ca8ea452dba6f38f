#include "fuzz/driver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "config/load.h"
#include "fuzz/driver_steps.h"

namespace tacho::fuzz {
namespace {

using namespace std::chrono_literals;
using kernel_test::Cgroup;

/// Five seconds, and up to two visits of the sweep (README, "Datagrams").
constexpr auto kForgotten = 9500ms;

std::string new_path() {
  return kernel_test::playground() + "/" + kernel_test::unique_name();
}

std::string write_configuration(bool watched = true) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("tacho-fuzz-{}.yaml", ::getpid());
  std::ofstream(path) << fmt::format("window: 2s\ntargets:\n  - {{name: life, cgroup: \"{}/{}\"}}\n",
                                     kernel_test::playground(), watched ? "*" : "nobody");
  return path;
}

}  // namespace

Driver::Driver()
    : cgroups_{Cgroup(new_path()), Cgroup(new_path()), Cgroup(new_path())}, config_file_(write_configuration()) {
  start();
  renew_agents();
}

void Driver::start() {
  tacho_ = std::make_unique<kernel_test::Running>(config::load_file(config_file_).config, config_file_);
  for (const Cgroup& cgroup : cgroups_) {
    if (!tacho_->wait_for([&] { return tacho_->watches({{"cgroup", cgroup.path()}}); })) {
      throw std::runtime_error("tacho does not find " + cgroup.path());
    }
  }
}

void Driver::restart() {
  for (const Target target : kTargets) {
    const auto index = static_cast<std::size_t>(target);
    Numbers so_far = numbers(target);
    // What is open now begins at 0.
    for (const auto now : {kInFlight, kActiveServer, kActiveClient}) {
      so_far[now] = before_.at(index).at(now);
    }
    carried_.at(index) = std::move(so_far);
  }
  tacho_.reset();
  start();
}

Driver::~Driver() {
  std::error_code ignored;
  std::filesystem::remove(config_file_, ignored);
}

void Driver::renew_agents() {
  for (std::size_t i = 0; i < kPlaces; ++i) {
    const auto target = static_cast<std::size_t>(target_of(static_cast<Place>(i)));
    agents_.at(i) = std::make_unique<Agent>(cgroups_.at(target).directory());
  }
  const auto listen = [this](How kind) {
    listeners_[kind] =
        agent(Place::server).order({.task = Task::listen, .how = kind, .slot = listener_of(kind)}).result;
  };
  std::ranges::for_each(kStreamKinds, listen);
  std::ranges::for_each(kDatagramKinds, listen);
  readers_.clear();
}

Report Driver::open(const Step& step) {
  const Done done =
      agent(Place::client)
          .order({.task = Task::connect, .how = step.how, .slot = step.connection, .number = listeners_.at(step.how)});
  if (done.result < 0) {
    throw std::runtime_error(fmt::format("connect: {}", done.result));
  }
  ports_[step.connection] = done.result;
  return {.when = done.when};
}

/// Nobody listens on port 1 (tcpmux, RFC 1078).
void Driver::refuse(const Step& step) {
  constexpr int kSlot = 2000;
  must_be("connect", -ECONNREFUSED,
          agent(Place::client).order({.task = Task::connect, .how = step.how, .slot = kSlot, .number = 1}).result);
}

Report Driver::transfer(const Model& model, const Step& step) {
  const bool by_server = step.act == Act::server_send || step.act == Act::server_read;
  const Agent& self = agent(by_server ? model.server_place(step.connection) : Place::client);
  const Done done = self.order({.task = is_send(step.act) ? Task::send : Task::receive,
                                .how = step.how,
                                .content = step.content,
                                .slot = step.connection,
                                .bytes = step.bytes});
  Report report{.bytes = done.result, .when = done.when};
  if (is_read(step.act)) {
    const auto unread = static_cast<std::int64_t>(by_server ? model.unread_by_server(step.connection)
                                                            : model.unread_by_client(step.connection));
    must_be("bytes read", std::min<std::int64_t>(step.bytes, unread), done.result);
    return report;
  }
  must_be("bytes sent", step.bytes, done.result);
  // A reader that waits takes it at once; what is not accepted yet cannot be asked.
  const bool there = by_server ? model.client_holds(step.connection) : model.server_holds(step.connection);
  if (there && (by_server || !model.reader_waits(step.connection))) {
    const Agent& other = agent(by_server ? Place::client : model.server_place(step.connection));
    const auto unread = by_server ? model.unread_by_client(step.connection) : model.unread_by_server(step.connection);
    const auto wanted = static_cast<int>(unread) + step.bytes;
    const Done arrived = other.order({.task = Task::await_bytes, .slot = step.connection, .bytes = wanted});
    must_be("bytes that have come", wanted, arrived.result);
    report.arrived = arrived.when.latest;
  }
  return report;
}

Report Driver::pass(const Model& model, const Step& step) {
  const Place from = model.server_place(step.connection);
  const Place to = step.how == How::sibling ? Place::sibling : Place::stranger;
  if (from == to) {
    return {};
  }
  const auto descriptor = agent(from).order({.task = Task::descriptor, .slot = step.connection}).result;
  const Done done = agent(to).order({.task = Task::take,
                                     .slot = step.connection,
                                     .bytes = static_cast<int>(descriptor),
                                     .number = agent(from).pid()});
  must_be("descriptor taken", 0, done.result);
  agent(from).order({.task = Task::close, .slot = step.connection});
  return {.when = done.when};
}

void Driver::set_watched(const Step& step) {
  const bool watched = step.act == Act::watch;
  write_configuration(watched);
  const bool done = tacho_->app().reload() && tacho_->wait_for([&] {
    return std::ranges::all_of(
        cgroups_, [&](const Cgroup& cgroup) { return tacho_->watches({{"cgroup", cgroup.path()}}) == watched; });
  });
  if (!done) {
    throw std::runtime_error("the configuration does not take effect");
  }
}

Report Driver::perform(const Model& model, const Step& step) {
  const int k = step.connection;
  if (model.datagrams().knows(k) && !concerns_all(step.act)) {
    return datagram(model.datagrams(), step);
  }
  const auto tell = [&](Place place, Task task) {
    const Done done = agent(place).order({.task = task, .how = step.how, .slot = k, .bytes = step.bytes});
    must_be("result", 0, done.result);
    return Report{.when = done.when};
  };
  switch (step.act) {
    case Act::open:
      return open(step);
    case Act::accept: {
      const Done done =
          agent(Place::server).order({.task = Task::accept, .slot = k, .number = listener_of(model.kind(k))});
      must_be("accept", 0, done.result);
      return {.when = done.when};
    }
    case Act::client_send:
    case Act::client_read:
    case Act::server_send:
    case Act::server_read:
      return transfer(model, step);
    case Act::server_wait:
      readers_[k] = step;
      return tell(model.server_place(k), Task::begin_read);
    case Act::client_shut:
      return tell(Place::client, Task::shut);
    case Act::server_shut:
      return tell(model.server_place(k), Task::shut);
    case Act::client_close:
      return tell(Place::client, Task::close);
    case Act::client_reset:
      return tell(Place::client, model.kind(k) == How::local ? Task::close : Task::reset);
    case Act::server_close:
      return tell(model.server_place(k), Task::close);
    case Act::server_reset:
      return tell(model.server_place(k), model.kind(k) == How::local ? Task::close : Task::reset);
    case Act::pass:
      return pass(model, step);
    case Act::pause:
      std::this_thread::sleep_for(std::chrono::milliseconds(step.bytes));
      return {};
    case Act::forget:
      // Tacho sweeps meanwhile.
      tacho_->wait_for([] { return false; }, kForgotten);
      if (!in_flight().empty()) {
        throw std::runtime_error("something is in flight after so long");
      }
      return {};
    case Act::unwatch:
    case Act::watch:
      set_watched(step);
      return {};
    case Act::restart:
      restart();
      return {};
    case Act::refuse:
      refuse(step);
      return {};
    case Act::reload:
      if (!tacho_->app().reload()) {
        throw std::runtime_error("the configuration was refused");
      }
      return {};
  }
  return {};
}

/// The end of one side has come to the other before anything else happens.
void Driver::await_end(const Model& model, const Step& step) {
  const int k = step.connection;
  const bool by_client = step.act == Act::client_shut || step.act == Act::client_close || step.act == Act::client_reset;
  const bool by_server = step.act == Act::server_shut || step.act == Act::server_close || step.act == Act::server_reset;
  const bool answered =
      is_send(step.act) && (step.act == Act::client_send ? model.client_was_reset(k) : model.server_was_reset(k));
  if (!by_client && !by_server && !answered) {
    return;
  }
  const bool at_server = by_client || (answered && step.act == Act::server_send);
  if (at_server ? !model.server_holds(k) : !model.client_holds(k)) {
    return;
  }
  const Agent& other = agent(at_server ? model.server_place(k) : Place::client);
  if (other.order({.task = Task::await_end, .slot = k}).result <= 0) {
    throw std::runtime_error("the other side does not see the end");
  }
}

void Driver::finish_reader(Model& model, const Step& step) {
  const int k = step.connection;
  const auto reader = readers_.find(k);
  if (reader == readers_.end()) {
    return;
  }
  const bool ends = step.act == Act::client_shut || step.act == Act::client_close || step.act == Act::client_reset;
  if (!ends && step.act != Act::client_send) {
    return;
  }
  Step read = reader->second;
  readers_.erase(reader);
  const Done done = agent(model.server_place(k)).order({.task = Task::end_read, .slot = k});
  const std::int64_t come = ends ? 0 : std::min(read.bytes, step.bytes);
  must_be("bytes that the waiting thread read", come, std::max<std::int64_t>(done.result, 0));
  read.act = Act::server_read;
  model.apply(read, {.bytes = come, .when = done.when});
}

void Driver::step(Model& model, const Step& step) {
  if (!model.can(step)) {
    return;
  }
  try {
    model.apply(step, perform(model, step));
    if (concerns_all(step.act) || model.datagrams().knows(step.connection)) {
      return;
    }
    finish_reader(model, step);
    await_end(model, step);
  } catch (const std::exception& error) {
    std::string text = to_text({step});
    text.pop_back();
    throw std::runtime_error(fmt::format("{}: {}", text, error.what()));
  }
}

std::string Driver::live(const Life& life) {
  for (const Target target : kTargets) {
    before_.at(static_cast<std::size_t>(target)) = numbers(target);
  }
  Model model;
  try {
    for (const Step& next : life) {
      step(model, next);
    }
    while (const auto last = model.last_steps()) {
      step(model, *last);
    }
  } catch (...) {
    set_watched({.act = Act::watch});
    renew_agents();
    throw;
  }
  if (!model.excuse().empty()) {
    ++excused_;
    return tacho_->wait_for([&] { return in_flight().empty(); }, kForgotten) ? "" : in_flight();
  }
  std::string different = differences(model);
  if (!different.empty()) {
    // What ends in the background may take a moment.
    tacho_->wait_for(
        [&] {
          different = differences(model);
          return different.empty();
        },
        500ms);
  }
  if (different.empty() && model.datagrams().are_told_apart() && !is_multiplexed(Target::server)) {
    return "server: several requests at a time are not told\n";
  }
  return different;
}

}  // namespace tacho::fuzz
