#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "web/gate.h"

// What the gate gives to threads, and what comes back.

namespace tacho::web {
namespace {

/// Calls a function that answers; what it throws becomes a 500.
template <class Make>
std::pair<Rendered, bool> guarded(const Make& make, const RenderOptions& options) {
  try {
    const Response response = make();
    return {render(response, options), response.status < 400};
  } catch (const std::exception& error) {
    spdlog::error("web server: {}", error.what());
  } catch (...) {
    spdlog::error("web server: unknown exception");
  }
  return {render(error_response(500), options), false};
}

}  // namespace

/// What becomes of a request; false: the exchange is over.
bool Gate::place(Exchange& exchange, Verdict verdict) {
  if (verdict.response) {
    const bool good = verdict.response->status < 400;
    counters_.refused += verdict.response->status == 429 ? 1U : 0U;
    return answer(exchange, render(*std::move(verdict.response), exchange.options), good);
  }
  exchange.phase = Exchange::Phase::working;
  exchange.since = Clock::now();
  exchange.route = verdict.route;
  if (verdict.route == nullptr) {
    queue(passwords_, exchange);
    return true;
  }
  exchange.task.emplace(liveness_.begin(exchange.request.method + ' ' + verdict.route->path));
  if (!verdict.route->page) {
    queue(requests_, exchange);
    return true;
  }
  ask_for_page(exchange);
  return true;
}

/// Where the line is too long, the source that has most in it loses its newest.
void Gate::queue(FairQueue<Id>& line, Exchange& exchange) {
  line.push(exchange.source.key, exchange.id, exchange.of_source->known);
  while (line.size() > limits_.in_line) {
    const auto id = line.pop_newest_of_largest(limits_.in_line);
    if (Exchange* const other = find(*id); other != nullptr) {
      ++counters_.refused;
      other->task.reset();
      Response response = error_response(503);
      response.headers.emplace_back("Retry-After", "1");
      other->answer = render(std::move(response), other->options);
      other->phase = Exchange::Phase::sending;
      other->since = Clock::now();
      line_up(sendings_, *other, other->of_source->known);
    }
  }
}

void Gate::start_work(Clock::time_point now) {
  while (handlers_->idle() && requests_.size() > 0) {
    if (Exchange* const exchange = find(*requests_.pop()); exchange != nullptr) {
      start_handler(*exchange);
    }
  }
  while (password_checker_->idle() && passwords_.size() > 0) {
    if (Exchange* const exchange = find(*passwords_.pop()); exchange != nullptr) {
      start_password(*exchange);
    }
  }
  start_page(now);
}

void Gate::start_handler(Exchange& exchange) {
  handlers_->start([this, id = exchange.id, route = exchange.route, request = exchange.request,
                    options = exchange.options]() -> Workers::Finish {
    auto [rendered, good] = guarded([&] { return Site::call(*route, request); }, options);
    return [this, id, answer = std::move(rendered), good] {
      if (answer.body) {
        hold(answers_, answer.body);
      }
      finish(id, answer, good);
    };
  });
}

void Gate::start_password(Exchange& exchange) {
  password_checker_->start(
      [this, id = exchange.id, request = exchange.request, policy = config_.policy()]() -> Workers::Finish {
        Request checked = request;
        Verdict verdict = site_.check_password(checked, *policy);
        return [this, id, checked = std::move(checked), verdict = std::move(verdict)] {
          Exchange* const found = find(id);
          if (found == nullptr) {
            return;
          }
          found->request = checked;
          if (!place(*found, verdict)) {
            drop(id);
          }
        };
      });
}

void Gate::finish(Id id, Rendered rendered, bool good) {
  Exchange* const exchange = find(id);
  if (exchange != nullptr && !answer(*exchange, std::move(rendered), good)) {
    drop(id);
  }
}

}  // namespace tacho::web
