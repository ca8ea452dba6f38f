// The row of the dashboard Target that tells what the time of requests went to (probes socket and sched together).
local panels = import '../lib/panels.libsonnet';
local signals = import '../lib/signals.libsonnet';

local mixed = 'for requests that one thread has open at the same time (an event loop with slow requests, the mode interleaved): their parts are of all of these';

function(selection)
  local s = signals.new(selection, '');
  local parts(title, shows, time, requests, more) = panels.timeseries({
    title: title,
    shows: shows + ' cpu: on a CPU; runqueue: waiting for one; lock, disk, network, event (epoll, poll), sleep: what its thread waited for; handover: read, and the thread that answers had not begun.',
    beware: mixed + '.',
    unit: 's',
    stack: true,
    w: 12,
    queries: [panels.query(s.meanByPart(time, requests, more), '{{part}}')],
  });
  [
    {
      title: 'Anatomy of a request',
      panels: [
        parts(
          'What requests wait for',
          'Mean time of a request by what it went to: the parts add up to its duration.',
          'tacho_request_time_seconds_total',
          'tacho_request_serving_total',
          'mode!="unknown"'
        ),
        parts(
          'What slow requests wait for',
          'The same of the slowest hundredth, or of what is above probes.anatomy.slow. A part that is large here and small beside it makes the tail.',
          'tacho_slow_request_time_seconds_total',
          'tacho_slow_requests_total',
          ''
        ),
        panels.timeseries({
          title: 'Hand-over',
          shows: 'From the read of a request by one thread to the moment at which the thread that answered it began: the queue inside the server. It grows with the load while the work stays what it is.',
          beware: 'for threads that do other work between two requests without ever waiting.',
          unit: 's',
          queries: [
            panels.query(s.quantile(0.5, 'tacho_request_handover_seconds'), 'p50'),
            panels.query(s.quantile(0.99, 'tacho_request_handover_seconds'), 'p99'),
            panels.query(s.mean('tacho_request_handover_seconds'), 'mean'),
          ],
        }),
        panels.timeseries({
          title: 'Who serves',
          shows: 'Requests per second by mode: answered by the thread that read them and had no other open (same_thread) or had (interleaved), by another thread (handed_over). Of the mode unknown nothing is in the parts.',
          beware: 'for HTTP/2 and datagrams, which are unknown.',
          unit: 'reqps',
          stack: true,
          queries: [panels.query(s.rate('tacho_request_serving_total', '', 'mode'), '{{mode}}')],
        }),
      ],
    },
  ]
