#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "web/encoding.h"
#include "web/gate.h"

// What the gate gives to threads, and what comes back.

namespace tacho::web {
namespace {

constexpr auto kPageWaits = std::chrono::seconds(1);  // for those that still send the pages before it

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

Page make_page(const SharedPage& shared, const std::string& content_type, bool plain, bool zipped) {
  Page page{.content_type = content_type, .plain = {}, .zipped = {}};
  Pieces text = shared.make(content_type);
  if (zipped && size_of(text) >= kMinCompressed) {
    const bool keep = plain;
    if (auto compressed = gzip(text, keep)) {
      page.zipped = std::make_shared<const Pieces>(std::move(*compressed));
    } else if (!keep) {
      text = shared.make(content_type);
    }
  }
  if (plain || !page.zipped) {
    page.plain = std::make_shared<const Pieces>(std::move(text));
  }
  return page;
}

}  // namespace

/// What becomes of a request; false: the exchange is over.
bool Gate::place(Exchange& exchange, Verdict verdict) {
  if (verdict.response) {
    const bool good = verdict.response->status < 400;
    return answer(exchange, render(*std::move(verdict.response), exchange.options), good);
  }
  exchange.phase = Exchange::Phase::working;
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
  std::string content_type = verdict.route->page->content_type(exchange.request);
  auto batch = std::ranges::find_if(
      batches_, [&](const Batch& each) { return each.route == exchange.route && each.content_type == content_type; });
  if (batch == batches_.end()) {
    batches_.push_back(
        {.route = exchange.route, .content_type = std::move(content_type), .ids = {}, .since = Clock::now()});
    batch = std::prev(batches_.end());
  }
  batch->ids.push_back(exchange.id);
  return true;
}

/// Where the line is too long, the source that has most in it loses its newest.
void Gate::queue(FairQueue<Id>& line, Exchange& exchange) {
  line.push(exchange.source.key, exchange.id, regulars_.knows(exchange.source.key));
  while (line.size() > limits_.in_line) {
    const auto id = line.pop_newest_of_largest();
    if (Exchange* const other = find(*id); other != nullptr) {
      ++counters_.refused;
      other->task.reset();
      Response response = error_response(503);
      response.headers.emplace_back("Retry-After", "1");
      other->answer = render(std::move(response), other->options);
      other->phase = Exchange::Phase::sending;
      other->since = Clock::now();
      eager_.push_back(*id);
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

void Gate::start_page(Clock::time_point now) {
  while (!batches_.empty() && page_maker_->idle()) {
    std::erase_if(batches_.front().ids, [this](Id id) { return find(id) == nullptr; });
    if (batches_.front().ids.empty()) {
      batches_.pop_front();
      continue;
    }
    if (!has_room_for_page(batches_.front().since, now)) {
      return;
    }
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    const auto zips = [this](Id id) { return accepts_gzip(find(id)->options.accept_encoding); };
    const bool zipped = std::ranges::any_of(batch.ids, zips);
    const bool plain = !std::ranges::all_of(batch.ids, zips);
    page_maker_->start([this, batch = std::move(batch), plain, zipped]() -> Workers::Finish {
      try {
        Page page = make_page(*batch.route->page, batch.content_type, plain, zipped);
        return [this, ids = batch.ids, page = std::move(page)] { hand_out(ids, page, true); };
      } catch (const std::exception& error) {
        spdlog::error("GET {} failed: {}", batch.route->path, error.what());
      } catch (...) {
        spdlog::error("GET {} failed", batch.route->path);
      }
      return [this, ids = batch.ids] { hand_out(ids, {}, false); };
    });
  }
}

void Gate::hand_out(const std::vector<Id>& ids, const Page& page, bool made) {
  for (const auto& body : {page.plain, page.zipped}) {
    if (body) {
      hold(pages_, body);
    }
  }
  for (const Id id : ids) {
    if (const Exchange* const exchange = find(id); exchange != nullptr) {
      finish(id, made ? render(page, exchange->options) : render(error_response(500), exchange->options), made);
    }
  }
}

bool Gate::has_room_for_page(Clock::time_point waiting_since, Clock::time_point now) {
  if (bytes_of(pages_) < limits_.held_bytes) {
    return true;
  }
  drop_stale(pages_, now);
  while (bytes_of(pages_) >= limits_.held_bytes && waiting_since + kPageWaits <= now && take_back(pages_)) {
  }
  return bytes_of(pages_) < limits_.held_bytes;
}

void Gate::finish(Id id, Rendered rendered, bool good) {
  Exchange* const exchange = find(id);
  if (exchange != nullptr && !answer(*exchange, std::move(rendered), good)) {
    drop(id);
  }
}

}  // namespace tacho::web
