#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "web/encoding.h"
#include "web/gate.h"

// Pages: large, and made once for all who wait.

namespace tacho::web {
namespace {

Page produce(const SharedPage& shared, const std::string& content_type, bool plain, bool zipped) {
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

void Gate::ask_for_page(Exchange& exchange) {
  std::string content_type = exchange.route->page->content_type(exchange.request);
  auto batch = std::ranges::find_if(
      batches_, [&](const Batch& each) { return each.route == exchange.route && each.content_type == content_type; });
  if (batch == batches_.end()) {
    batches_.push_back({.route = exchange.route, .content_type = std::move(content_type), .ids = {}});
    batch = std::prev(batches_.end());
  }
  batch->ids.push_back(exchange.id);
}

/// Begins a page of the first batch in which somebody may have one now. The others of that batch wait on, behind the
/// other batches.
void Gate::start_page(Clock::time_point now) {
  for (auto left = batches_.size(); left > 0 && page_maker_->idle(); --left) {
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    std::erase_if(batch.ids, [this](Id id) { return find(id) == nullptr; });
    if (batch.ids.empty()) {
      continue;
    }
    make_room_for_page(batch, now);
    Batch begun{.route = batch.route, .content_type = batch.content_type, .ids = take_those_with_room(batch)};
    if (!batch.ids.empty()) {
      batches_.push_back(std::move(batch));
    }
    if (!begun.ids.empty()) {
      make_page(begun);
    }
  }
}

void Gate::make_page(const Batch& batch) {
  const auto zips = [this](Id id) { return find(id)->options.gzip; };
  const bool zipped = std::ranges::any_of(batch.ids, zips);
  const bool plain = !std::ranges::all_of(batch.ids, zips);
  page_maker_->start([this, batch, plain, zipped]() -> Workers::Finish {
    try {
      Page page = produce(*batch.route->page, batch.content_type, plain, zipped);
      return [this, ids = batch.ids, page = std::move(page)] { hand_out(ids, page, true); };
    } catch (const std::exception& error) {
      spdlog::error("GET {} failed: {}", batch.route->path, error.what());
    } catch (...) {
      spdlog::error("GET {} failed", batch.route->path);
    }
    return [this, ids = batch.ids] { hand_out(ids, {}, false); };
  });
}

/// Where nobody of a batch may have a page, clients that take nothing of theirs lose it, and after a while others. Who
/// has none waits for no longer than for a client that takes nothing.
void Gate::make_room_for_page(const Batch& batch, Clock::time_point now) {
  for (bool stale_are_gone = false;;) {
    const bool full = bytes_of(pages_) >= limits_.held_bytes;
    const BytesOfSources held = bytes_of_sources(pages_);
    const auto held_by = [&](Id id) {
      const auto found = held.find(find(id)->source.key);
      return found == held.end() ? 0 : found->second;
    };
    // Ids rise: of those with equally few bytes this is the one that came first.
    const Id next = *std::ranges::min_element(batch.ids, {}, [&](Id id) { return std::pair(held_by(id), id); });
    if (!full && held_by(next) < limits_.source_held_bytes) {
      return;
    }
    const std::string* const in_the_way = full ? nullptr : &find(next)->source.key;
    if (!std::exchange(stale_are_gone, true)) {
      drop_stale(pages_, now, in_the_way);
      continue;
    }
    const auto waits = held_by(next) == 0 ? std::min(limits_.patience, limits_.page_waits) : limits_.page_waits;
    if (find(next)->since + waits > now || !take_back(pages_, in_the_way)) {
      return;
    }
  }
}

/// All whose source has not too much already.
std::vector<Gate::Id> Gate::take_those_with_room(Batch& batch) {
  std::vector<Id> ready;
  if (bytes_of(pages_) >= limits_.held_bytes) {
    return ready;
  }
  const BytesOfSources held = bytes_of_sources(pages_);
  std::erase_if(batch.ids, [&](Id id) {
    const auto found = held.find(find(id)->source.key);
    const bool has_room = found == held.end() || found->second < limits_.source_held_bytes;
    if (has_room) {
      ready.push_back(id);
    }
    return has_room;
  });
  return ready;
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

}  // namespace tacho::web
