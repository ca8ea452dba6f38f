#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "loading.h"

namespace {

using Lines = std::vector<std::string>;

// Every key on a line of its own, so that mutations can be made by line.
const Lines kBase{
    "window: 10s",
    "idle_limit: 1s",
    "targets:",
    "  - name: web",
    "    cgroup: /system.slice/nginx.service",
    "    ports: [80, 443]",
    "  - name: api",
    "    container:",
    "      name: api-*",
    "      namespace: prod",
    "      pod: api-?",
    "    labels:",
    "      team: payments",
    "      tier: front",
    "  - name: dns",
    "    process:",
    "      exe: /usr/sbin/unbound",
    "      port: 53",
    "  - name: own",
    "    self: pod",
    "discovery:",
    "  listeners: auto",
    "  exclude: [/system.slice/ssh.service]",
    "probes:",
    "  socket:",
    "    enabled: true",
    "    attach: auto",
    "  poll:",
    "    enabled: false",
    "    attach: kprobe",
    "histograms:",
    "  format: both",
    "  buckets_per_octave: 2",
    "metrics:",
    "  drop: [tacho_poll_duration_mean_seconds]",
    "limits:",
    "  max_targets: 100",
    "  max_peers: 10",
    "run_statistics: false",
};

std::string join(const Lines& lines) {
  std::string out;
  for (const auto& line : lines) {
    out += line + '\n';
  }
  return out;
}

/// A line of kBase taken apart: "    - " + "name" + ": " + "web".
struct Parts {
  std::string start, key, value;
};

Parts take_apart(const std::string& line) {
  const std::size_t key = line.find_first_not_of(" -");
  const std::size_t colon = line.find(':');
  return {.start = line.substr(0, key),
          .key = line.substr(key, colon - key),
          .value = colon + 2 <= line.size() ? line.substr(colon + 2) : ""};
}

bool is_label(const std::string& key) {
  return key == "team" || key == "tier";
}

std::string with_line(std::size_t index, const std::string& line) {
  Lines lines = kBase;
  lines[index] = line;
  return join(lines);
}

std::string with_inserted(std::size_t index, const std::string& line) {
  Lines lines = kBase;
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(index), line);
  return join(lines);
}

std::string without_line(std::size_t index) {
  Lines lines = kBase;
  lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(index));
  return join(lines);
}

struct Mutant {
  std::string what;
  std::string yaml;
};

/// Values that no key, or not this one, can have.
std::vector<std::string> bad_values(const std::string& key, const std::string& value) {
  static const std::map<std::string, std::vector<std::string>> kByKey{
      {"window", {"10", "10 s", "1s", "2h", "10sec", "1.5s", "-10s", "s", "\"\""}},
      {"idle_limit", {"1", "9ms", "5s", "1m", "1000000us1ms"}},
      {"cgroup", {"\"\"", "nginx.service", "/a/", "/a//b", "'/a['", "'/a\\'", "5"}},
      {"exe", {"\"\"", "unbound", "'/a[z-a]'"}},
      {"namespace", {"\"\"", "'['"}},
      {"port", {"0", "65536", "080", "0x50", "http", "'53'", "5.3", "-1"}},
      {"ports", {"80", "[0]", "[80, 80]", "[http]", "[65536]", "[[80]]", "[80,,81]"}},
      {"self", {"node", "Pod", "true"}},
      {"listeners", {"maybe", "true", "Auto", "1"}},
      {"exclude", {"/a", "[a]", "['']", "[5]", "{}"}},
      {"enabled", {"yes", "on", "1", "'true'", "tru"}},
      {"attach", {"uprobe", "Auto", "[auto]", "0"}},
      {"format", {"Both", "text", "true", "[native]"}},
      {"drop", {"a", "['']", "[5]", "['[']", "{}"}},
      {"buckets_per_octave", {"0", "3", "8", "one", "'1'", "02"}},
      {"max_targets", {"0", "10001", "-5", "1e3", "many", "0100", "3.0"}},
      {"max_peers", {"0", "1025", "'10'", "99999999999999999999"}},
      {"run_statistics", {"no", "0", "'false'"}},
      {"team", {"5", "true", "\"\"", "\"a\\0b\"", "1.5"}},
  };
  std::vector<std::string> values{"{x: 1}", "~", "", "!!str x", "*unknown", "@x", "\"unclosed", "x: y", "[unclosed"};
  if (!value.starts_with('[')) {
    values.emplace_back("[]");
  }
  if (const auto found = kByKey.find(key); found != kByKey.end()) {
    values.insert(values.end(), found->second.begin(), found->second.end());
  }
  return values;
}

/// Mutants that are wrong for certain, whatever the rest of the file says.
std::vector<Mutant> bad_mutants() {
  std::vector<Mutant> mutants;
  for (std::size_t i = 0; i < kBase.size(); ++i) {
    const auto [start, key, value] = take_apart(kBase[i]);
    const std::string at = " in line " + std::to_string(i + 1);
    if (!is_label(key)) {
      mutants.push_back({"letter added to a key" + at, with_line(i, start + key + "x: " + value)});
      mutants.push_back({"letter dropped from a key" + at, with_line(i, start + key.substr(1) + ": " + value)});
      mutants.push_back({"key in capitals" + at, with_line(i, start + "X" + key + ": " + value)});
    } else {
      mutants.push_back({"reserved label" + at, with_line(i, start + "le: " + value)});
      mutants.push_back({"bad label" + at, with_line(i, start + "9" + key + ": " + value)});
    }
    mutants.push_back({"colon dropped" + at, with_line(i, start + key + ' ' + value)});
    mutants.push_back({"tab" + at, with_line(i, '\t' + kBase[i])});
    mutants.push_back({"no UTF-8" + at, with_line(i, kBase[i] + "\xc3")});
    mutants.push_back({"control character" + at, with_line(i, kBase[i] + '\x01')});
    mutants.push_back({"second document" + at, with_inserted(i + 1, "---")});
    if (value.empty()) {
      continue;
    }
    if (!start.ends_with("- ")) {
      mutants.push_back({"duplicate" + at, with_inserted(i, kBase[i])});
    }
    for (const auto& bad : bad_values(key, value)) {
      mutants.push_back({"value " + bad + at, with_line(i, start + key + ": " + bad)});
    }
    mutants.push_back({"huge value" + at, with_line(i, start + key + ": " + std::string(100'000, 'x'))});
    std::string deep = "a: ";
    deep += std::string(40, '[');
    deep += std::string(40, ']');
    mutants.push_back({"deep value" + at, with_line(i, start + key + ": {" + deep + '}')});
  }
  for (const std::size_t selector : {4U, 19U}) {
    mutants.push_back({"selector dropped", without_line(selector)});
  }
  for (const std::size_t name : {3U, 6U, 14U, 18U}) {
    mutants.push_back({"duplicate or reserved name", with_line(name, name == 3 ? "  - name: api" : "  - name: web")});
    mutants.push_back({"reserved name", with_line(name, "  - name: other")});
    mutants.push_back({"second selector", with_inserted(name + 1, name == 18 ? "    cgroup: /a" : "    self: pod")});
    mutants.push_back({"no name", with_line(name, "  - labels: {}")});
  }
  return mutants;
}

/// Every error has a place in the file and says something.
void check_places(const std::string& yaml, const std::vector<tacho::config::Diagnostic>& errors) {
  const auto lines = 1 + std::ranges::count(yaml, '\n');
  for (const auto& error : errors) {
    if (error.where.line < 1 || error.where.line > lines || error.where.column < 1 || error.message.empty()) {
      FAIL_CHECK("error without a place: " << format(error, "test.yaml"));
    }
  }
}

std::string random_mutant(std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random()) % limit; };
  Lines lines = kBase;
  const std::size_t line = below(lines.size());
  const std::size_t other = below(lines.size());
  switch (below(9)) {
    case 0:  // truncated anywhere
      return join(lines).substr(0, below(join(lines).size()));
    case 1:  // a line moved
      std::swap(lines[line], lines[other]);
      return join(lines);
    case 2: {  // indentation of two lines swapped
      const auto indent = [](const std::string& text) { return text.substr(0, text.find_first_not_of(' ')); };
      const std::string first = indent(lines[line]);
      const std::string second = indent(lines[other]);
      lines[line].replace(0, first.size(), second);
      lines[other] = line == other ? lines[other] : first + lines[other].substr(second.size());
      return join(lines);
    }
    case 3:  // indented more or less
      lines[line] = below(2) == 0 ? ' ' + lines[line] : lines[line].substr(1);
      return join(lines);
    case 4:  // a line dropped
      return without_line(line);
    case 5: {  // some bytes replaced by characters with a meaning in YAML
      static constexpr std::string_view kMeaning = "[]{}:,-?!&*#|>'\"%@`\\ \n\t~0x";
      std::string text = join(lines);
      for (std::size_t count = 1 + below(4); count > 0; --count) {
        text[below(text.size())] = kMeaning[below(kMeaning.size())];
      }
      return text;
    }
    case 6: {  // some bytes replaced by any
      std::string text = join(lines);
      for (std::size_t count = 1 + below(4); count > 0; --count) {
        text[below(text.size())] = static_cast<char>(below(256));
      }
      return text;
    }
    case 7: {  // a piece of the text repeated elsewhere
      std::string text = join(lines);
      const std::string piece = text.substr(below(text.size()), below(80));
      return text.insert(below(text.size()), piece);
    }
    default: {  // noise
      std::string text(below(200), ' ');
      std::ranges::generate(text, [&] { return static_cast<char>(below(256)); });
      return text;
    }
  }
}

}  // namespace

TEST_CASE("the configuration that is mutated is good") {
  CHECK(good(join(kBase)).targets.size() == 4);
}

TEST_CASE("mutants that must be wrong are refused with a place") {
  const auto mutants = bad_mutants();
  CHECK(mutants.size() >= 200);
  for (const auto& [what, yaml] : mutants) {
    const auto errors = tacho::config::load_text(yaml, "test.yaml").errors;
    if (errors.empty()) {
      FAIL_CHECK("accepted: " << what << '\n' << yaml);
    }
    check_places(yaml, errors);
  }
}

TEST_CASE("mutants that may be right never crash, and their errors have a place") {
  std::mt19937 random(20261120);  // NOLINT(cert-msc51-cpp): the same mutants in every run
  int refused = 0;
  constexpr int kRounds = 5000;
  for (int round = 0; round < kRounds; ++round) {
    const std::string yaml = random_mutant(random);
    const auto errors = tacho::config::load_text(yaml, "test.yaml").errors;
    refused += errors.empty() ? 0 : 1;
    check_places(yaml, errors);
  }
  CHECK(refused > kRounds / 2);
  CHECK(refused < kRounds);  // so that it was not all noise
}
