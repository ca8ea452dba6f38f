#include "process/starter.h"

#include <fcntl.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "boundary/lane.h"
#include "process/confine.h"
#include "process/messages.h"

namespace tacho::process {
namespace {

using namespace std::chrono_literals;

constexpr auto kGrace = 800ms;  // for the web process to end by itself, where the collector was killed
constexpr auto kLook = 10ms;

class StarterProcess {
 public:
  StarterProcess(WebSide side, UniqueFd control) : side_(std::move(side)), control_(std::move(control)) {}

  [[noreturn]] void run() {
    ::pthread_setname_np(::pthread_self(), "tacho-starter");
    while (true) {
      ReceivedMessage got = receive(control_.get());
      switch (got.message.kind) {
        case Message::Kind::none:
          finish();
        case Message::Kind::end:
          kill_web();  // whatever it hangs in: nobody waits for it any more
          ::_exit(0);
        case Message::Kind::start:
          start(std::move(got.descriptor));
          break;
        case Message::Kind::spare:
          fork_spare(std::move(got.descriptor));
          break;
        default:
          break;
      }
    }
  }

 private:
  void start(UniqueFd control) {
    const int before = end_web();
    const pid_t starter = ::getpid();
    web_ = ::fork();
    if (web_ == 0) {
      become_web(std::move(control), starter);
    }
    send(control_.get(), Message(Message::Kind::started, {}, web_ > 0 ? web_ : -errno, before));
  }

  [[noreturn]] void become_web(UniqueFd control, pid_t starter) {
    ::pthread_setname_np(::pthread_self(), "tacho-web");
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (::getppid() != starter) {
      ::_exit(1);
    }
    control_.reset();
    int code = 1;
    try {
      code = run_web(std::move(side_), std::move(control));
    } catch (const std::exception&) {
      code = 1;
    }
    ::_exit(code);
  }

  /// Only if nobody waits for what it has under way.
  void kill_web() const {
    if (web_ > 0) {
      ::kill(web_, SIGKILL);
    }
  }

  /// @return how it ended
  int end_web() {
    int status = 0;
    if (web_ > 0) {
      kill_web();
      ::waitpid(web_, &status, 0);
    }
    web_ = -1;
    return status;
  }

  void fork_spare(UniqueFd control) {
    if (::fork() == 0) {
      control_ = std::move(control);
      web_ = -1;
    }
  }

  [[noreturn]] void finish() {
    const auto until = std::chrono::steady_clock::now() + kGrace;
    while (web_ > 0 && ::waitpid(web_, nullptr, WNOHANG) == 0 && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(kLook);
    }
    ::_exit(0);  // a web process that is left ends with this one
  }

  WebSide side_;
  UniqueFd control_;
  pid_t web_ = -1;
};

/// Of what the program was started with, only the log goes to web, and only to be written: nobody's terminal is read.
void leave_terminal() {
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (nothing) {
    ::dup2(nothing.get(), STDIN_FILENO);
    ::dup2(nothing.get(), STDOUT_FILENO);
  }
  if ((::fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) == O_RDWR) {
    const UniqueFd log(::open("/proc/self/fd/2", O_WRONLY | O_NOCTTY | O_CLOEXEC));  // no socket can be opened so
    if (log) {
      ::dup2(log.get(), STDERR_FILENO);
    }
  }
}

}  // namespace

Result<Starter> fork_starter(WebSide& side, const std::vector<int>& others) {
  auto lane = boundary::make_lane();
  if (!lane) {
    return std::unexpected(lane.error());
  }
  OPENSSL_init_ssl(OPENSSL_INIT_LOAD_CONFIG, nullptr);  // reads a file
  const pid_t pid = ::fork();
  if (pid < 0) {
    return fail_errno("cannot start a process");
  }
  if (pid > 0) {
    return Starter{.control = std::move(lane->first), .pid = pid};
  }
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);  // a terminal's ^C is meant for the collector, which ends this
  lane->first.reset();
  for (const int descriptor : others) {
    ::close(descriptor);
  }
  leave_terminal();
  std::string lacks;
  for (const std::string& line : confine_starter()) {
    lacks += line + "\n";
  }
  send(lane->second.get(), Message(Message::Kind::lacks, lacks));
  StarterProcess(std::move(side), std::move(lane->second)).run();
}

}  // namespace tacho::process
