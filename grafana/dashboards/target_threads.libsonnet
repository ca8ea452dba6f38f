// Rows of the dashboard Target that are about idleness (probe poll), the rhythm of operations, and what to doubt.
local conditions = import '../lib/conditions.libsonnet';
local panels = import '../lib/panels.libsonnet';
local signals = import '../lib/signals.libsonnet';

function(selection)
  local s = signals.new(selection, '');
  local polling = {
    title: 'Polling and idleness',
    panels: [
      panels.timeseries({
        title: 'Idle share of threads',
        shows: 'Share of their time that threads wait in epoll, poll or select: the slack that is left.',
        beware: 'under busy_polling, and for threads that poll for replies of a dependency: they look idle while a request waits for them.',
        unit: 'percentunit',
        max: 1,
        queries: [panels.query(s.idleShare, 'idle')],
      }),
      panels.timeseries({
        title: 'Mean wait of a poll',
        shows: 'Mean duration of polling calls over the window of the configuration, waits in progress included (ISPASS 2024: saturation slack). It falls towards zero as the server fills up.',
        beware: 'between servers: how often a server polls is its own matter. With several instances chosen, the least one is shown.',
        unit: 's',
        queries: [panels.query(s.gauge('tacho_poll_duration_mean_seconds', '', '', 'min'), 'mean wait')],
      }),
      panels.timeseries({
        title: 'Polls by outcome',
        shows: 'Polling calls per second. Nonblocking ones do not wait at all: a busy loop, or a server that looks once more before it sleeps.',
        beware: 'for io_uring, which is waited for elsewhere.',
        unit: 'ops',
        stack: true,
        queries: [panels.query(s.rate('tacho_polls_total', '', 'outcome'), '{{outcome}}')],
      }),
      panels.timeseries({
        title: 'Threads',
        shows: 'Threads that poll for work, and how many of them wait now.',
        beware: 'as the size of the server: threads that never polled are not in it.',
        unit: 'short',
        queries: [
          panels.query(s.gauge('tacho_threads'), 'threads'),
          panels.query(s.gauge('tacho_poll_waiters'), 'waiting'),
        ],
      }),
    ],
  };
  local rhythm = {
    title: 'Rhythm of socket operations',
    panels: [
      panels.timeseries({
        title: 'CV² of intervals',
        shows: 'Variance over the squared mean of the intervals between socket operations: 0 is a clock, 1 is random arrivals, more is bursts.',
        beware: 'for a pause longer than idle_limit, which is left out, and where instances differ: intervals of all that is chosen are taken together.',
        unit: 'none',
        queries: [panels.query(s.cv2(direction), direction) for direction in ['send', 'receive']],
      }),
      panels.timeseries({
        title: 'Variance of intervals',
        shows: 'Variance of the intervals between socket operations in s² (ISPASS 2024, eq. 2).',
        beware: 'without the rate beside it: it falls with the square of the rate; compare CV².',
        unit: 'none',
        queries: [panels.query(s.variance(direction), direction) for direction in ['send', 'receive']],
      }),
      panels.timeseries({
        title: 'Operations',
        shows: 'Socket operations per second. Sends per request tell how many pieces a reply takes.',
        beware: 'as requests: one reply may be many sends.',
        unit: 'ops',
        queries: [panels.query(s.rate('tacho_socket_operations_total', '', 'direction'), '{{direction}}')],
      }),
      panels.timeseries({
        title: 'Payload',
        shows: 'Bytes sent and received on sockets per second, without protocol headers of the kernel.',
        beware: 'as traffic of the network card: loopback and unix sockets are in it, retransmissions are not.',
        unit: 'Bps',
        queries: [panels.query(s.rate('tacho_socket_bytes_total', '', 'direction'), '{{direction}}')],
      }),
    ],
  };
  local doubts = {
    title: 'What to doubt',
    panels: [
      panels.timeline({
        title: 'Conditions',
        shows: 'When a series of the target may not mean what it says. %s.' % conditions.explained(),
        beware: 'to the second: conditions are judged over the window of the configuration.',
        unit: 'none',
        states: [[0, 'no', 'transparent'], [1, 'yes', 'orange']],
        queries: [panels.query(s.gauge('tacho_target_condition', '', 'condition', 'max'), '{{condition}}')],
      }),
      panels.table({
        title: 'What it is',
        h: 5,
        unit: 'none',
        shows: 'What tacho knows about the target: where it runs and what runs it.',
        beware: 'for containers whose runtime leaves no names on the node: then only the cgroup is known.',
        sort: 'Instance',
        queries: [panels.row('max by (instance, target, cgroup, container_id, runtime, image, compose_project, compose_service, workload, workload_kind, node, unit) (tacho_target_info{%s})' % selection)],
        hidden: ['Value'],
        columns: [
          { name: 'instance', title: 'Instance' },
          { name: 'target', title: 'Target' },
          { name: 'cgroup', title: 'Cgroup' },
          { name: 'container_id', title: 'Container id' },
          { name: 'runtime', title: 'Runtime' },
          { name: 'unit', title: 'Unit' },
        ],
      }),
    ],
  };
  [polling, rhythm, doubts]
