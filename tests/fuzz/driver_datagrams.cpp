#include <algorithm>

#include "fuzz/driver.h"
#include "fuzz/driver_steps.h"

namespace tacho::fuzz {

Report Driver::datagram(const Datagrams& model, const Step& step) {
  const int k = step.connection;
  const bool by_server = step.act == Act::server_send || step.act == Act::server_read;
  const int slot = by_server ? listener_of(model.kind(k)) : k;
  if (step.act == Act::client_close) {
    return {.when = agent(Place::client).order({.task = Task::close, .slot = k}).when};
  }
  const Done done = agent(by_server ? Place::server : Place::client)
                        .order({.task = is_send(step.act) ? Task::send : Task::receive,
                                .how = step.act == Act::server_send ? model.kind(k) : step.how,
                                .content = step.content,
                                .slot = slot,
                                .bytes = step.bytes,
                                .number = step.act == Act::server_send ? ports_.at(k) : 0});
  Report report{.bytes = done.result, .when = done.when};
  if (is_read(step.act)) {
    must_be("bytes read", std::min(step.bytes, by_server ? model.next_for_server(k) : model.next_for_client(k)),
            done.result);
    return report;
  }
  must_be("bytes sent", step.bytes, done.result);
  // How many bytes wait is told of the first datagram alone.
  if (model.arrives_alone(step)) {
    const Agent& other = agent(by_server ? Place::client : Place::server);
    const Done arrived = other.order(
        {.task = Task::await_bytes, .slot = by_server ? k : listener_of(model.kind(k)), .bytes = step.bytes});
    must_be("bytes that have come", step.bytes, arrived.result);
    report.arrived = arrived.when.latest;
  }
  return report;
}

}  // namespace tacho::fuzz
