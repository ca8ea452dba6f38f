// All targets of a cluster: who is busy, who is slow, who is near the limit, and who changed.
local conditions = import '../lib/conditions.libsonnet';
local dashboard = import '../lib/dashboard.libsonnet';
local panels = import '../lib/panels.libsonnet';
local signals = import '../lib/signals.libsonnet';

local selection = 'job=~"$job", instance=~"$instance", namespace=~"$namespace"';
local exporters = 'job=~"$job", instance=~"$instance"';
local identity = 'instance, namespace, pod, container, target';
local total = signals.new(selection, '');
local each = signals.new(selection, identity);
local legend = '{{target}} {{pod}} {{instance}}';
// What the table of targets shows; a condition about anything else is no reason to doubt it.
local shown = [
  'tacho_requests_total',
  'tacho_request_duration_seconds',
  'tacho_request_queue_seconds',
  'tacho_saturation_ratio',
  'tacho_requests_in_flight',
  'tacho_requests_unanswered_total',
];
local doubted = conditions.matcher(shown);
local top(expr) = 'topk(10, %s)' % expr;

// The same expression at the beginning of the comparison.
local before(expr) = std.strReplace(expr, '[$__rate_interval]', '[$__rate_interval] offset $compare');
local p99 = each.quantile(0.99, 'tacho_request_duration_seconds');

local headline = {
  title: 'Now',
  panels: [
    panels.stat({
      title: 'Targets',
      shows: 'Servers, containers and services that are watched on all nodes.',
      beware: 'as a count of replicas: what is alike under the same name is one target on each node.',
      unit: 'short',
      queries: [panels.query('sum(tacho_targets{%s})' % exporters, 'targets')],
    }),
    panels.stat({
      title: 'Requests',
      shows: 'Requests answered per second, all targets together.',
      beware: 'as the requests of users: one that goes through three watched services counts three times.',
      unit: 'reqps',
      queries: [panels.query(total.requests, 'requests')],
    }),
    panels.stat({
      title: 'In flight',
      shows: 'Requests that have been read and not yet answered, all targets together.',
      beware: 'for servers on unix sockets, whose requests in flight are not known, and for requests that still wait to be read.',
      unit: 'short',
      queries: [panels.query(total.gauge('tacho_requests_in_flight'), 'in flight')],
    }),
    panels.stat({
      title: 'Saturated targets',
      shows: 'Targets that are above 90 % of their capacity, as far as their threads show it.',
      beware: 'where the column Doubts of the table below says so, and for servers that wait for others while a thread is blocked.',
      unit: 'short',
      steps: [['green', null], ['red', 1]],
      queries: [panels.query('count((%s) > 0.9) or vector(0)' % each.saturation, 'saturated')],
    }),
    panels.stat({
      title: 'Targets with conditions',
      shows: 'Targets of which a series of this dashboard does not mean what it says; the dashboard Target names the condition. %s.' % conditions.explained(shown),
      beware: 'as an alarm: a loss of events is told of every target of its node.',
      unit: 'short',
      steps: [['green', null], ['yellow', 1]],
      queries: [panels.query('count(max by (%s) (tacho_target_condition{%s, %s}) == 1) or vector(0)' % [identity, selection, doubted], 'conditions')],
    }),
    panels.stat({
      title: 'Exporters that do not answer',
      shows: 'Scrapes of tacho that fail at the moment; the dashboard Exporter health tells more.',
      beware: 'when service discovery has forgotten a node: what is not scraped is not missed here.',
      unit: 'short',
      steps: [['green', null], ['red', 1]],
      queries: [panels.query('count(up{%s} == 0) or vector(0)' % exporters, 'down')],
    }),
  ],
};

local table = {
  title: 'Targets',
  panels: [
    panels.table({
      title: 'All targets',
      h: 12,
      unit: 'short',
      shows: 'One row a target: requests per second, duration (arrival to first byte of the reply), share of it spent waiting to be read, saturation, requests in flight, connections that ended unanswered. A click on the name opens its dashboard.',
      beware: 'for targets whose column Doubts is above 0: so many conditions say that a series may not mean what it says. Quantiles are interpolated within buckets of one octave.',
      sort: 'Requests/s',
      queries: [
        panels.row(each.requests),
        panels.row(each.quantile(0.5, 'tacho_request_duration_seconds')),
        panels.row(p99),
        panels.row(each.queueShare),
        panels.row(each.saturation),
        panels.row(each.gauge('tacho_requests_in_flight')),
        panels.row(each.rate('tacho_requests_unanswered_total')),
        panels.row(each.gauge('tacho_target_condition', doubted)),
      ],
      columns: [
        {
          name: 'target',
          title: 'Target',
          properties: { links: [{
            title: 'Dashboard of the target',
            url: '/d/tacho-target?var-datasource=${datasource}&var-target=${__data.fields.Target}&var-instance=${__data.fields.Instance}&${__url_time_range}',
          }] },
        },
        { name: 'namespace', title: 'Namespace' },
        { name: 'pod', title: 'Pod' },
        { name: 'container', title: 'Container' },
        { name: 'instance', title: 'Instance' },
        { name: 'Value #A', title: 'Requests/s', properties: { unit: 'reqps' } },
        { name: 'Value #B', title: 'p50', properties: { unit: 's' } },
        { name: 'Value #C', title: 'p99', properties: { unit: 's' } },
        { name: 'Value #D', title: 'Queue share', properties: { unit: 'percentunit', max: 1 } },
        {
          name: 'Value #E',
          title: 'Saturation',
          properties: {
            unit: 'percentunit',
            max: 1,
            thresholds: panels.thresholds([['green', null], ['yellow', 0.7], ['red', 0.9]]),
            'custom.cellOptions': { type: 'color-text' },
          },
        },
        { name: 'Value #F', title: 'In flight', properties: { unit: 'short' } },
        { name: 'Value #G', title: 'Unanswered/s', properties: { unit: 'ops' } },
        { name: 'Value #H', title: 'Doubts', properties: { unit: 'short' } },
      ],
    }),
  ],
};

local busiest = {
  title: 'The ten most …',
  panels: [
    panels.timeseries({
      title: 'Busiest targets',
      shows: 'Requests answered per second, of the ten busiest targets at each moment.',
      beware: 'where a condition holds. %s.' % conditions.explained(['tacho_requests_total']),
      unit: 'reqps',
      queries: [panels.query(top(each.requests), legend)],
    }),
    panels.timeseries({
      title: 'Slowest targets',
      shows: '99th percentile of the duration, of the ten slowest targets at each moment.',
      beware: 'for targets with fewer than some hundred requests in the interval, and within a factor of two: buckets are one octave wide.',
      unit: 's',
      queries: [panels.query(top(p99), legend)],
    }),
    panels.timeseries({
      title: 'Most saturated targets',
      shows: 'tacho_saturation_ratio: the larger one of the share of its CPUs that the target runs on, and of the utilisation at which an M/M/1 queue is as long as the queue of its requests that are not read yet. 0 is idle, 1 is saturated.',
      beware: 'for requests that queue inside of the server (one that reads before it can work), where CPUs are busy with something else than requests, and below what it shows where a condition holds. %s.' % conditions.explained(['tacho_saturation_ratio']),
      unit: 'percentunit',
      max: 1,
      queries: [panels.query(top(each.saturation), legend)],
    }),
    panels.timeseries({
      title: 'Most queueing targets',
      shows: 'Share of the time of requests that they waited to be read by the server.',
      beware: 'for durations of some microseconds, where waking a thread up is a queue too.',
      unit: 'percentunit',
      max: 1,
      queries: [panels.query(top(each.queueShare), legend)],
    }),
  ],
};

local movers = {
  title: 'Movers: now against $compare ago',
  panels: [
    panels.timeseries({
      title: 'Rate: gained most',
      signed: true,
      shows: 'Requests per second more than so long ago, of the ten that gained most.',
      beware: 'for targets that did not exist then: they are left out.',
      unit: 'reqps',
      queries: [panels.query(top('%s\n- %s' % [each.requests, before(each.requests)]), legend)],
    }),
    panels.timeseries({
      title: 'Rate: lost most',
      signed: true,
      shows: 'Requests per second fewer than so long ago, of the ten that lost most.',
      beware: 'for targets that no longer exist: they are left out, and an alert names them.',
      unit: 'reqps',
      queries: [panels.query(top('%s\n- %s' % [before(each.requests), each.requests]), legend)],
    }),
    panels.timeseries({
      title: 'Duration: slowed down most',
      shows: '99th percentile of the duration divided by the one so long ago: 2 is twice as slow.',
      beware: 'up to a factor of two: a distribution that steps over the edge of a bucket moves the estimate by an octave.',
      unit: 'none',
      queries: [panels.query(top('%s\n/ (%s > 0)' % [p99, before(p99)]), legend)],
    }),
    panels.timeseries({
      title: 'Queue share: grew most',
      signed: true,
      shows: 'Share of time waited to be read, less the one so long ago.',
      beware: 'while the rate is small: few requests make a noisy share.',
      unit: 'percentunit',
      queries: [panels.query(top('%s\n- (%s)' % [each.queueShare, before(each.queueShare)]), legend)],
    }),
  ],
};

function(config) dashboard.new(
  config,
  'tacho-overview',
  'tacho / Overview',
  'Every server that tacho watches: rate, duration, queueing, saturation, and what changed.',
  [
    dashboard.many('job', 'Job', 'label_values(tacho_build_info, job)'),
    dashboard.many('instance', 'Instance', 'label_values(tacho_build_info{job=~"$job"}, instance)'),
    dashboard.many('namespace', 'Namespace', 'label_values(tacho_target_info{job=~"$job", instance=~"$instance"}, namespace)', '.*'),
    dashboard.choice('compare', 'Compare with', ['1h', '15m', '6h', '1d', '7d']),
  ],
  [headline, table, busiest, movers]
)
