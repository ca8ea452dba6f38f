// Rows of the dashboard Target that are about requests, connections and dependencies (probe socket).
local conditions = import '../lib/conditions.libsonnet';
local panels = import '../lib/panels.libsonnet';
local signals = import '../lib/signals.libsonnet';

local multiplexed = 'under the condition multiplexed (HTTP/2, pipelining): fewer turns are seen than requests made';
local octave = 'more closely than a factor of two: buckets are one octave wide, and quantiles are interpolated in them';
local coarse = 'more closely than a factor of four: without native histograms, buckets are two octaves wide and quantiles are interpolated in them';
local wanting = 'there without native histograms or histograms.buckets_per_octave in the configuration';

function(selection)
  local s = signals.new(selection, '');
  local golden = {
    title: 'Golden signals',
    panels: [
      panels.timeseries({
        title: 'Rate',
        shows: 'Requests answered per second: turns on server sockets. Beside it the estimate of the ISPASS 2024 paper, sends per second, and the handshakes of TLS, which are no requests.',
        beware: multiplexed + '; then the estimate is the better one.',
        unit: 'reqps',
        queries: [
          panels.query(s.requests, 'requests'),
          panels.query(s.gauge('tacho_observed_rps'), 'estimate from sends'),
          panels.query(s.orNone(s.rate('tacho_handshakes_total')), 'TLS handshakes'),
        ],
      }),
      panels.timeseries({
        title: 'Duration',
        shows: 'From the arrival of a request at the socket to the first byte of its reply.',
        beware: octave + '; the mean is exact. What happens in the network before the arrival is not in it.',
        unit: 's',
        queries: [
          panels.query(s.quantile(0.5, 'tacho_request_duration_seconds'), 'p50'),
          panels.query(s.quantile(0.9, 'tacho_request_duration_seconds'), 'p90'),
          panels.query(s.quantile(0.99, 'tacho_request_duration_seconds'), 'p99'),
          panels.query(s.mean('tacho_request_duration_seconds'), 'mean'),
        ],
      }),
      panels.timeseries({
        title: 'Unanswered',
        shows: 'Connections that ended with a request unanswered, as a share of all requests: what a server that crashes, times out or sheds load looks like from outside.',
        beware: 'as the rate of errors: a reply that says 500 is a reply.',
        unit: 'percentunit',
        queries: [panels.query(s.unansweredShare, 'unanswered')],
      }),
      panels.timeseries({
        title: 'Saturation',
        shows: 'tacho_saturation_ratio: the larger one of the share of its CPUs that the target runs on, and of the utilisation at which an M/M/1 queue is as long as the queue of its requests that are not read yet. 0 is idle, 1 is saturated.',
        beware: 'for requests that queue inside of the server (one that reads before it can work), where CPUs are busy with something else than requests, and below what it shows where a condition holds. %s.' % conditions.explained(['tacho_saturation_ratio']),
        unit: 'percentunit',
        max: 1,
        queries: [panels.query(s.saturation, 'saturation')],
      }),
    ],
  };
  local queueing = {
    title: 'Queue against service',
    panels: [
      panels.timeseries({
        title: 'Where the time goes',
        shows: 'Mean time a request waits to be read (queue), until the first byte of the reply (service), and until its last (reply).',
        beware: 'as a sum of the duration: the duration ends with the first byte, and a request in several pieces is read for a while between queue and service.',
        unit: 's',
        stack: true,
        queries: [
          panels.query(s.mean('tacho_request_queue_seconds'), 'queue'),
          panels.query(s.mean('tacho_request_service_seconds'), 'service'),
          panels.query(s.orNone(s.mean('tacho_request_reply_seconds')), 'reply'),
        ],
      }),
      panels.timeseries({
        title: 'Queue share',
        shows: 'Share of the duration that requests waited to be read. When it rises with the load, the server has too few threads or too little CPU; when it does not, look at the service time.',
        beware: 'for durations of some microseconds, where waking a thread up is a queue too.',
        unit: 'percentunit',
        max: 1,
        queries: [panels.query(s.queueShare, 'queue share')],
      }),
      panels.heatmap({
        title: 'Durations',
        shows: 'How many requests took how long: two bands are two kinds of requests, which no quantile shows.',
        beware: octave + '.',
        unit: 's',
        queries: [panels.heat(s.increase('tacho_request_duration_seconds_bucket', '', 'le'))],
      }),
      panels.heatmap({
        title: 'Queue times',
        shows: 'How many requests waited how long to be read.',
        beware: coarse + '.',
        unit: 's',
        queries: [panels.heat(s.increase('tacho_request_queue_seconds_bucket', '', 'le'))],
      }),
      panels.timeseries({
        title: 'In flight',
        shows: 'Requests that were read and not yet answered, at the moment of the scrape.',
        beware: 'for what happens between two scrapes, for servers on unix sockets (always 0), and as the length of the queue: what waits to be read is not in it.',
        unit: 'short',
        queries: [panels.query(s.gauge('tacho_requests_in_flight'), 'in flight')],
      }),
      panels.timeseries({
        title: 'Tails of the parts',
        shows: '99th percentiles of duration, queue, service and reply: which part makes the tail of the duration. Those of service and reply are not ' + wanting + '.',
        beware: coarse + '. They do not add up: they are seldom those of the same requests.',
        unit: 's',
        queries: [
          panels.query(s.quantile(0.99, 'tacho_request_%s_seconds' % part), part + ' p99')
          for part in ['duration', 'queue', 'service', 'reply']
        ],
      }),
    ],
  };
  local connections = {
    title: 'Connections',
    panels: [
      panels.timeseries({
        title: 'Open connections',
        shows: 'Connections that are open now: accepted (server) and made to others (client).',
        beware: 'for unix sockets, which are not in it.',
        unit: 'short',
        w: 8,
        queries: [panels.query(s.gauge('tacho_connections_active', '', 'role'), '{{role}}')],
      }),
      panels.timeseries({
        title: 'New connections',
        shows: 'Connections accepted (server) and opened (client) per second. Close to the rate of requests, keep-alive is missing.',
        beware: 'for unix sockets, which are not in it.',
        unit: 'cps',
        w: 8,
        queries: [panels.query(s.rate('tacho_connections_total', '', 'role'), '{{role}}')],
      }),
      panels.timeseries({
        title: 'Wait for accept',
        shows: 'From the establishment of a connection to its first read by the server. The 99th percentile is not ' + wanting + '.',
        beware: 'for clients that connect first and send later: their pause is in it.',
        unit: 's',
        w: 8,
        queries: [
          panels.query(s.mean('tacho_connection_accept_wait_seconds'), 'mean'),
          panels.query(s.quantile(0.99, 'tacho_connection_accept_wait_seconds'), 'p99'),
        ],
      }),
    ],
  };
  local dependencies = {
    title: 'Dependencies',
    panels: [
      panels.timeseries({
        title: 'Calls to dependencies',
        shows: 'Calls per second that others answered to this target, by address.',
        beware: 'behind a proxy or service mesh, which is the only dependency then, and for peers beyond max_peers: they are "other".',
        unit: 'ops',
        queries: [panels.query(s.rate('tacho_dependency_calls_total', '', 'peer'), '{{peer}}')],
      }),
      panels.timeseries({
        title: 'Time of dependencies',
        shows: '99th percentile of a call: from its last send to the first byte that comes back, network included.',
        beware: coarse + ', nor for several calls at a time on one connection.',
        unit: 's',
        queries: [panels.query(s.quantile(0.99, 'tacho_dependency_duration_seconds', '', 'peer'), '{{peer}}')],
      }),
    ],
  };
  [golden, queueing, connections, dependencies]
