#include <algorithm>
#include <ranges>

#include "fuzz/model.h"

namespace tacho::fuzz {
namespace {

constexpr int kMostConnections = 6;
/// Of version 2 with IPv4 addresses, and of a line.
constexpr int kProxyLeast = 28;
constexpr int kProxyMost = 107;

}  // namespace

void Model::Turn::bring(Content content) {
  is_request = is_request || content == Content::text || content == Content::data;
  brings_handshake = brings_handshake || content == Content::hello || content == Content::welcome ||
                     content == Content::keys || content == Content::cipher || content == Content::finished;
  brings_goodbye = brings_goodbye || content == Content::goodbye || content == Content::parting;
}

bool Model::can(const Step& step) const {
  if (step.act == Act::unwatch || step.act == Act::watch || step.act == Act::restart) {
    return watched_ == (step.act != Act::watch) && (step.act == Act::restart || datagrams_.empty());
  }
  if (step.act == Act::forget) {
    // What becomes of streams in such a time is said elsewhere.
    return connections_.empty() && datagrams_.can_forget();
  }
  if (step.act == Act::refuse) {
    return step.how == How::tcp || step.how == How::tcp6;
  }
  if (concerns_all(step.act)) {
    return true;
  }
  const auto found = connections_.find(step.connection);
  if (datagrams_.knows(step.connection) || (step.act == Act::open && is_one_of(step.how, kDatagramKinds))) {
    return watched_ && found == connections_.end() && datagrams_.can(step);
  }
  if (step.act == Act::open) {
    return found == connections_.end() && step.connection >= 0 && step.connection < kMostConnections &&
           is_one_of(step.how, kStreamKinds);
  }
  if (found == connections_.end()) {
    return false;
  }
  const Connection& c = found->second;
  const bool served = c.accepted && c.server.open;
  // On a closed TCP connection the first send is answered by a reset, on a unix one it fails.
  // The second of several fails there, too.
  const auto reaches = [&c, &step](const End& other) {
    return other.open || (c.is_tcp() && step.how != How::several && step.how != How::more);
  };
  switch (step.act) {
    case Act::accept:
      return !c.accepted && std::ranges::none_of(connections_ | std::views::values, [&c](const Connection& other) {
        return other.kind == c.kind && !other.accepted && other.number < c.number;
      });
    case Act::client_send:
      if (step.content == Content::proxy && (c.has_asked || step.bytes < kProxyLeast || step.bytes > kProxyMost ||
                                             is_one_of(step.how, std::array{How::sendfile, How::more, How::several}))) {
        return false;
      }
      // A thread that reads may find only a part of what is sent in several.
      return !(c.reader && (step.how == How::several || step.how == How::more || step.how == How::sendfile)) &&
             c.client.can_send() && step.bytes > 1 && is_one_of(step.how, kSends) && reaches(c.server);
    case Act::server_send:
      // Nobody answers a ClientHello with data of the application.
      return served && c.server.can_send() && step.bytes > 1 && is_one_of(step.how, kSends) && reaches(c.client) &&
             !(c.greets && step.content != Content::welcome);
    case Act::client_read:
      return c.client.open && step.bytes > 1 && c.client.unread() > 0 && is_one_of(step.how, kReads);
    case Act::server_read:
      // Whoever expects a proxy reads its header whole.
      return served && !c.reader && step.bytes > 1 && c.server.unread() > 0 && is_one_of(step.how, kReads) &&
             !(c.server.begins_with_proxy() && step.bytes <= kProxyMost);
    case Act::server_wait:
      return served && !c.reader && step.bytes > 1 && c.server.unread() == 0 && !c.server.ended && !c.server.reset &&
             is_one_of(step.how, kReads) && step.how != How::peek;
    case Act::client_shut:
      return c.client.can_send();
    case Act::server_shut:
      return served && c.server.can_send();
    case Act::client_close:
    case Act::client_reset:
      return c.client.open;
    case Act::server_close:
    case Act::server_reset:
      return served && !c.reader;
    case Act::pass:
      return served && !c.reader && (step.how == How::sibling || step.how == How::stranger) &&
             (!c.turn || target_of(place_of(step.how)) == target_of(c.server.place));
    default:
      return false;
  }
}

}  // namespace tacho::fuzz
