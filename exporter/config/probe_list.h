#pragma once

/// The probes, a line each: PROBE(name, what it is in METRICS.md, what its hooks are on, what it observes). Keys below
/// `probes`, settings and the registry are made of this list; what else belongs to a probe has its name
/// (exporter/ARCHITECTURE.md, "How to add a probe").
#define TACHO_PROBES(PROBE)                                                                                  \
  PROBE(socket, "Sockets and requests", "sends, receives, requests and connections",                         \
        "Socket operations, requests and connections.")                                                      \
  PROBE(poll, "Polling", "epoll, poll and select", "Time spent waiting for work in epoll, poll and select.") \
  PROBE(sched, "Threads and CPUs", "what threads do",                                                        \
        "Time that threads run, wait for a CPU, sleep or are blocked; quotas and limits of CPUs.")
