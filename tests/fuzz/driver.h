#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/agent.h"
#include "fuzz/life.h"
#include "fuzz/model.h"
#include "fuzz/numbers.h"
#include "kernel/support/running.h"

namespace tacho::fuzz {

/// Lives are lived by four processes in three cgroups that a tacho in this process watches.
class Driver {
 public:
  Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver();

  /// Lives it to the end. @return what was counted otherwise than the model says, one difference a line; empty if
  /// nothing
  std::string live(const Life& life);
  /// Lives that were not judged, see Model::excuse().
  [[nodiscard]] int excused() const { return excused_; }

 private:
  [[nodiscard]] Agent& agent(Place place) { return *agents_.at(static_cast<std::size_t>(place)); }
  [[nodiscard]] Numbers numbers(Target target);
  Report perform(const Model& model, const Step& step);
  Report transfer(const Model& model, const Step& step);
  Report open(const Step& step);
  void refuse(const Step& step);
  void start();
  void restart();
  Report datagram(const Datagrams& model, const Step& step);
  void set_watched(const Step& step);
  Report pass(const Model& model, const Step& step);
  void finish_reader(Model& model, const Step& step);
  void await_end(const Model& model, const Step& step);
  void step(Model& model, const Step& step);
  void renew_agents();
  [[nodiscard]] std::string differences(const Model& model);
  /// Also what is not judged ends; and it must not end in the next life.
  /// @return of whom more or less is in flight than before
  [[nodiscard]] std::string in_flight();
  /// Whether the condition is raised within the next samples.
  [[nodiscard]] bool is_multiplexed(Target target);

  std::array<kernel_test::Cgroup, kTargets.size()> cgroups_;
  std::string config_file_;
  std::unique_ptr<kernel_test::Running> tacho_;
  std::array<Numbers, kTargets.size()> carried_;  // what those before it have counted
  std::array<Numbers, kTargets.size()> before_;   // the life that is being lived
  std::array<std::unique_ptr<Agent>, kPlaces> agents_;
  std::map<How, std::int64_t> listeners_;  // port, or pid of who listens
  int excused_ = 0;
  std::map<int, std::int64_t> ports_;  // of the client's sockets, by connection
  std::map<int, Step> readers_;        // what a thread of the server's has begun, by connection
};

}  // namespace tacho::fuzz
