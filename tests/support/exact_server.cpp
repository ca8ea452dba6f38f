// A server that does exactly what it is told and counts what it did: the known side of the end-to-end tests.
// Prints "listening ADDRESS" when it is ready and its tally as one line of JSON on SIGTERM or SIGINT.
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <csignal>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/address.h"
#include "support/conversation.h"

namespace tacho::support {
namespace {

struct Server {
  int listener = -1;
  Behaviour behaviour;
  Tally* tally = nullptr;
};

void serve_one_after_the_other(const Server& server) {
  while (auto connection = accept_from(server.listener)) {
    Conversation(std::move(*connection), server.behaviour, *server.tally).serve_to_the_end();
  }
}

void serve_in_threads(const Server& server) {
  while (auto connection = accept_from(server.listener)) {
    // Ends with the process: the connections outlive nothing that they refer to.
    std::thread([&server, socket = std::move(*connection)]() mutable {
      Conversation(std::move(socket), server.behaviour, *server.tally).serve_to_the_end();
    }).detach();
  }
}

void serve_event_loop(const Server& server) {
  constexpr int kEvents = 64;
  const UniqueFd poller(epoll_create1(EPOLL_CLOEXEC));
  std::map<int, Conversation> conversations;
  const auto watch = [&](int descriptor) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
    return epoll_ctl(poller.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
  };
  if (!watch(server.listener)) {
    return;
  }
  std::array<epoll_event, kEvents> events{};
  for (;;) {
    const int ready = epoll_wait(poller.get(), events.data(), kEvents, -1);
    for (int index = 0; index < ready; ++index) {
      const int descriptor = events.at(static_cast<std::size_t>(index)).data.fd;
      if (descriptor == server.listener) {
        if (auto connection = accept_from(server.listener)) {
          const int socket = connection->get();
          conversations.try_emplace(socket, std::move(*connection), server.behaviour, *server.tally);
          watch(socket);
        }
      } else if (!conversations.at(descriptor).serve_readable()) {
        conversations.erase(descriptor);
      }
    }
  }
}

void fork_workers(const Server& server, unsigned workers, const sigset_t& unblocked) {
  const pid_t parent = getpid();
  for (unsigned index = 0; index < workers; ++index) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      sigprocmask(SIG_SETMASK, &unblocked, nullptr);
      if (getppid() == parent) {
        serve_one_after_the_other(server);
      }
      _exit(1);
    }
  }
}

using Serve = void (*)(const Server&);

Serve serving(const std::string& mode) {
  if (mode == "epoll") {
    return serve_event_loop;
  }
  return mode == "threads" ? serve_in_threads : serve_one_after_the_other;
}

nlohmann::json describe(const Tally& tally) {
  constexpr double kNanosecond = 1e-9;
  return {{"connections", tally.connections.load()},
          {"requests", tally.requests.load()},
          {"receives", tally.receives.load()},
          {"sends", tally.sends.load()},
          {"received_bytes", tally.received_bytes.load()},
          {"sent_bytes", tally.sent_bytes.load()},
          {"queue_seconds", static_cast<double>(tally.queue_ns.load()) * kNanosecond},
          {"service_seconds", static_cast<double>(tally.service_ns.load()) * kNanosecond}};
}

Result<void> run(const std::string& address, const std::string& mode, unsigned workers, const Behaviour& behaviour) {
  const auto listener = listen_at(address);
  if (!listener) {
    return std::unexpected(listener.error());
  }
  void* shared = mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    return fail_errno("mmap");
  }
  const Server server{.listener = listener->socket.get(), .behaviour = behaviour, .tally = new (shared) Tally{}};

  sigset_t endings;
  sigset_t unblocked;
  sigemptyset(&endings);
  sigaddset(&endings, SIGTERM);
  sigaddset(&endings, SIGINT);
  pthread_sigmask(SIG_BLOCK, &endings, &unblocked);
  prctl(PR_SET_TIMERSLACK, 1UL);

  if (mode == "prefork") {
    fork_workers(server, workers, unblocked);
  } else {
    std::thread(serving(mode), std::cref(server)).detach();
  }
  std::cout << "listening " << listener->name << '\n' << std::flush;
  int signal = 0;
  sigwait(&endings, &signal);
  std::cout << describe(*server.tally).dump() << '\n' << std::flush;
  return {};
}

}  // namespace
}  // namespace tacho::support

int main(int argc, char** argv) {
  using tacho::support::Behaviour;
  std::string address;
  std::string mode = "threads";
  unsigned workers = 4;
  unsigned read_delay_us = 0;
  unsigned reply_delay_us = 0;
  Behaviour behaviour;
  CLI::App app("A server with known behaviour that counts what it does");
  app.add_option("--listen", address, "127.0.0.1:PORT, [::1]:PORT (0: any) or unix:PATH")->required();
  app.add_option("--mode", mode, "how connections are served")
      ->check(CLI::IsMember({"single", "threads", "epoll", "prefork"}));
  app.add_option("--workers", workers, "processes of the mode prefork");
  app.add_option("--request-bytes", behaviour.request_bytes)->check(CLI::PositiveNumber);
  app.add_option("--reply-bytes", behaviour.reply_bytes)->check(CLI::PositiveNumber);
  app.add_option("--read-chunk", behaviour.read_chunk, "bytes a receive at most; 0: the whole request");
  app.add_option("--sends", behaviour.sends, "sends a reply")->check(CLI::PositiveNumber);
  app.add_option("--read-delay-us", read_delay_us, "wait so long with data waiting before it is read");
  app.add_option("--reply-delay-us", reply_delay_us, "wait so long between the request and the reply");
  CLI11_PARSE(app, argc, argv);
  behaviour.read_delay = std::chrono::microseconds(read_delay_us);
  behaviour.reply_delay = std::chrono::microseconds(reply_delay_us);
  if (const auto done = tacho::support::run(address, mode, workers, behaviour); !done) {
    std::cerr << "exact_server: " << done.error().message << '\n';
    return 1;
  }
  // Without destructors: the serving threads still run.
  _exit(0);
}
