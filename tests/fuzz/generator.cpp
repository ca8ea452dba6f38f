#include "fuzz/generator.h"

#include <array>
#include <span>

namespace tacho::fuzz {
namespace {

/// Distributions of the standard library differ between machines; this (SplitMix64) does not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ULL + 1) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  int below(int limit) { return static_cast<int>(next() % static_cast<std::uint64_t>(limit)); }
  bool once_in(int times) { return below(times) == 0; }
  template <class List>
  auto one_of(const List& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(std::size(list))))];
  }

 private:
  std::uint64_t state_;
};

/// How often each act is tried, when it is not a whole request.
struct Weight {
  Act act;
  int weight;
};
constexpr std::array kWeights{Weight{Act::open, 8},         Weight{Act::accept, 20},      Weight{Act::client_send, 30},
                              Weight{Act::client_read, 25}, Weight{Act::server_send, 25}, Weight{Act::server_read, 35},
                              Weight{Act::server_wait, 8},  Weight{Act::client_shut, 2},  Weight{Act::server_shut, 2},
                              Weight{Act::client_close, 3}, Weight{Act::server_close, 3}, Weight{Act::client_reset, 2},
                              Weight{Act::server_reset, 2}, Weight{Act::pass, 3},         Weight{Act::pause, 2},
                              Weight{Act::reload, 1},       Weight{Act::refuse, 1}};

Act draw(Dice& dice) {
  int sum = 0;
  for (const Weight& weight : kWeights) {
    sum += weight.weight;
  }
  int drawn = dice.below(sum);
  for (const Weight& weight : kWeights) {
    drawn -= weight.weight;
    if (drawn < 0) {
      return weight.act;
    }
  }
  return Act::pause;
}

How how_of(Act act, Dice& dice) {
  switch (act) {
    case Act::open:
      return dice.once_in(4) ? dice.one_of(kDatagramKinds) : dice.one_of(kStreamKinds);
    case Act::client_send:
    case Act::server_send:
      return dice.once_in(2) ? How::send : dice.one_of(kSends);
    case Act::client_read:
    case Act::server_read:
      return dice.once_in(2) ? How::recv : dice.one_of(kReads);
    case Act::server_wait:
      return How::recv;
    case Act::refuse:
      return dice.once_in(2) ? How::tcp : How::tcp6;
    case Act::pass:
      return dice.once_in(2) ? How::sibling : How::stranger;
    default:
      return How::none;
  }
}

int bytes_of(Act act, Dice& dice) {
  constexpr std::array kSizes{2, 3, 10, 31, 64, 100, 500, 1500, 4000};
  switch (act) {
    case Act::client_send:
    case Act::server_send:
      return dice.one_of(kSizes) + dice.below(3);
    case Act::client_read:
    case Act::server_read:
    case Act::server_wait:
      return dice.once_in(3) ? dice.one_of(kSizes) : 8192;
    case Act::pause:
      return dice.once_in(12) ? 700 : dice.once_in(3) ? 30 : 3;
    default:
      return 0;
  }
}

Step make(Act act, int connection, Dice& dice) {
  return {.act = act, .connection = connection, .bytes = bytes_of(act, dice), .how = how_of(act, dice)};
}

/// So many are most of what a server has answered in the last seconds.
constexpr int kQuicExchanges = 40;
constexpr std::array kNetworkKinds{How::udp, How::udp6};
/// One life in so many is of sinks, or of QUIC: those take seconds.
constexpr int kSlowDatagrams = 150;

/// A connection that speaks TLS, of either version, with the liberties that libraries take.
class TlsLife {
 public:
  explicit TlsLife(Dice& dice) : dice_(dice), modern_(!dice.once_in(3)) {}

  Life make() {
    add(Act::open, 0, dice_.one_of(kStreamKinds));
    add(Act::accept, 0, How::none);
    if (dice_.once_in(4)) {
      send(Act::client_send, 28 + dice_.below(80), Content::proxy);
      if (dice_.once_in(3)) {
        read(Act::server_read);
      }
    }
    send(Act::client_send, 200 + dice_.below(400), Content::hello);
    read(Act::server_read);
    modern_ ? shake_hands() : shake_hands_as_of_old();
    for (int i = dice_.below(6); i > 0; --i) {
      send(Act::client_send, 150 + dice_.below(1500), Content::data);
      read(Act::server_read);
      send(Act::server_send, 150 + dice_.below(4000), Content::data);
      read(Act::client_read);
    }
    if (!dice_.once_in(4)) {
      say_goodbye();
    }
    return std::move(life_);
  }

 private:
  void add(Act act, int bytes, How how, Content content = Content::text) {
    life_.push_back({.act = act, .connection = 0, .bytes = bytes, .how = how, .content = content});
  }
  void send(Act act, int bytes, Content content) {
    if (dice_.once_in(20)) {
      add(Act::pause, 3, How::none);
    }
    add(act, bytes, dice_.one_of(std::array{How::send, How::write, How::writev, How::sendmsg}), content);
  }
  void read(Act act) {
    if (dice_.once_in(6)) {
      add(act, 5, How::recv);  // the header of a record, then the rest
    }
    add(act, 8192, dice_.one_of(std::array{How::recv, How::read, How::readv, How::recvmsg}));
  }
  void shake_hands() {
    send(Act::server_send, 127, Content::welcome);
    send(Act::server_send, 1000 + dice_.below(3000), Content::data);
    read(Act::client_read);
    if (dice_.once_in(2)) {
      send(Act::client_send, 6, Content::cipher);
      if (dice_.once_in(4)) {
        read(Act::server_read);
      }
    }
    send(Act::client_send, 58 + 16 * dice_.below(2), Content::finished);
    read(Act::server_read);
    if (dice_.once_in(2)) {
      send(Act::server_send, 250 + dice_.below(250), Content::data);  // session tickets
    }
  }
  void shake_hands_as_of_old() {
    send(Act::server_send, 2000 + dice_.below(2000), Content::welcome);
    read(Act::client_read);
    send(Act::client_send, 75 + dice_.below(200), Content::keys);
    send(Act::client_send, 6, Content::cipher);
    send(Act::client_send, 45, Content::keys);
    read(Act::server_read);
    send(Act::server_send, 200, Content::keys);
    send(Act::server_send, 6, Content::cipher);
    send(Act::server_send, 45, Content::keys);
    read(Act::client_read);
  }
  void say_goodbye() {
    const Content content = modern_ ? Content::parting : Content::goodbye;
    const int bytes = modern_ ? 24 : 31;
    send(Act::client_send, bytes, content);
    read(Act::server_read);
    if (dice_.once_in(2)) {
      send(Act::server_send, bytes, content);
      if (dice_.once_in(2)) {
        read(Act::client_read);
      }
    }
    if (dice_.once_in(2)) {
      add(Act::server_close, 0, How::none);
    }
  }

  Dice& dice_;
  bool modern_;
  Life life_;
};

/// Datagrams of which many get no reply; or that look like QUIC's.
Life make_datagrams(Dice& dice, bool quic) {
  Life life;
  const int peers = 1 + dice.below(3);
  for (int k = 0; k < peers; ++k) {
    life.push_back(
        {.act = Act::open, .connection = k, .how = quic ? dice.one_of(kNetworkKinds) : dice.one_of(kDatagramKinds)});
  }
  const auto exchange = [&](int k, bool answered) {
    life.push_back({.act = Act::client_send,
                    .connection = k,
                    .bytes = 20 + dice.below(1200),
                    .how = How::send,
                    .content = quic ? Content::quic : Content::text});
    life.push_back({.act = Act::server_read, .connection = k, .bytes = 8192, .how = How::recv});
    if (answered) {
      life.push_back({.act = Act::server_send, .connection = k, .bytes = 20 + dice.below(1200), .how = How::send});
      life.push_back({.act = Act::client_read, .connection = k, .bytes = 8192, .how = How::recv});
    }
  };
  for (int i = quic ? kQuicExchanges : 3 + dice.below(30); i > 0; --i) {
    exchange(dice.below(peers), quic || dice.once_in(4));
  }
  if (quic) {
    return life;
  }
  life.push_back({.act = Act::forget});
  for (int i = dice.below(8); i > 0; --i) {
    if (dice.once_in(2)) {
      life.push_back({.act = Act::server_send, .connection = dice.below(peers), .bytes = 64, .how = How::send});
    } else {
      exchange(dice.below(peers), dice.once_in(2));
    }
  }
  return life;
}

/// Somewhere in it nothing is watched for some steps; only without datagrams (Model::can).
void add_gap(Life& life, Dice& dice) {
  const auto size = static_cast<int>(life.size());
  const int begin = dice.below(size);
  const int end = begin + dice.below(size - begin + 1);
  life.insert(life.begin() + end, Step{.act = Act::watch});
  life.insert(life.begin() + begin, Step{.act = Act::unwatch});
}

/// One life in so many has a restart, which takes as long as a hundred lives.
constexpr int kRestarts = 80;

/// Somewhere in it tacho is started anew.
void add_restart(Life& life, Dice& dice) {
  life.insert(life.begin() + dice.below(static_cast<int>(life.size())), Step{.act = Act::restart});
}

}  // namespace

Life generate(std::uint64_t seed) {
  Dice dice(seed);
  if (dice.once_in(5)) {
    Life life = TlsLife(dice).make();
    if (dice.once_in(kRestarts)) {
      add_restart(life, dice);
    }
    return life;
  }
  if (dice.once_in(kSlowDatagrams)) {
    return make_datagrams(dice, dice.once_in(2));
  }
  Life life;
  const int connections = 1 + dice.below(3);
  const int steps = 5 + dice.below(40);
  for (int k = 0; k < connections; ++k) {
    life.push_back(make(Act::open, k, dice));
    if (!dice.once_in(4)) {
      life.push_back(make(Act::accept, k, dice));
    }
  }
  for (int i = 0; i < steps; ++i) {
    const int k = dice.below(connections);
    if (dice.once_in(3)) {
      // An ordinary exchange.
      for (const Act act : {Act::client_send, Act::server_read, Act::server_send, Act::client_read}) {
        life.push_back(make(act, k, dice));
      }
    } else {
      life.push_back(make(draw(dice), k, dice));
    }
  }
  if (dice.once_in(4)) {
    add_gap(life, dice);
  } else if (dice.once_in(kRestarts)) {
    add_restart(life, dice);
  }
  return life;
}

}  // namespace tacho::fuzz
