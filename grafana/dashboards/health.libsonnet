// tacho itself: is it there, does it see everything, what does it cost.
local dashboard = import '../lib/dashboard.libsonnet';
local panels = import '../lib/panels.libsonnet';
local signals = import '../lib/signals.libsonnet';

local selection = 'job=~"$job", instance=~"$instance"';
local s = signals.new(selection, 'instance');
local withStatistics = 'without run_statistics: true in the configuration, when there is nothing to show';

local state = {
  title: 'State',
  panels: [
    panels.stat({
      title: 'Exporters that answer',
      w: 6,
      shows: 'Scrapes that succeed at the moment.',
      beware: 'when service discovery has forgotten a node: what is not scraped is not missed.',
      unit: 'short',
      queries: [panels.query('count(up{%s} == 1)' % selection, 'up')],
    }),
    panels.stat({
      title: 'Hooks without a method',
      w: 6,
      shows: 'Hooks that no method could attach: what they would see is missing from the series.',
      beware: 'as all that may be missing: a hook attached by a weaker method is not counted here.',
      unit: 'short',
      steps: [['green', null], ['red', 1]],
      queries: [panels.query('count(%s == 0) or vector(0)' % s.gauge('tacho_probe_attached', '', 'probe, hook', 'max'), 'missing')],
    }),
    panels.stat({
      title: 'Events lost',
      w: 6,
      shows: 'Events per second that could not be counted, all reasons together. A call to a peer beyond max_peers is counted under "other" and not lost.',
      beware: 'as zero error: an event that no hook sees is not lost but unknown.',
      unit: 'ops',
      steps: [['green', null], ['red', 0.001]],
      queries: [panels.query('sum(rate(tacho_lost_events_total{%s, reason!~"peer_overflow|skipped"}[$__rate_interval]))' % selection, 'lost')],
    }),
    panels.stat({
      title: 'Configurations refused',
      w: 6,
      shows: 'Exporters whose configuration file was bad when it was read last: the one before is in use.',
      beware: 'to tell that a file was changed: nobody reads it until SIGHUP or a POST to /-/reload.',
      unit: 'short',
      steps: [['green', null], ['red', 1]],
      queries: [panels.query('count(tacho_config_last_reload_successful{%s} == 0) or vector(0)' % selection, 'refused')],
    }),
    panels.table({
      title: 'Exporters',
      h: 6,
      w: 12,
      unit: 'none',
      shows: 'Version and compiler of each exporter, and how many targets it watches.',
      beware: 'as a list of nodes: an exporter that does not answer is missing here.',
      sort: 'Targets',
      queries: [
        panels.row('max by (instance, version, compiler) (tacho_build_info{%s})' % selection),
        panels.row(s.gauge('tacho_targets')),
      ],
      hidden: ['Value #A'],
      columns: [
        { name: 'instance', title: 'Instance' },
        { name: 'version', title: 'Version' },
        { name: 'compiler', title: 'Compiler' },
        { name: 'Value #B', title: 'Targets', properties: { unit: 'short' } },
      ],
    }),
    panels.table({
      title: 'Hooks',
      h: 6,
      w: 12,
      unit: 'none',
      shows: 'Each hook and the method that attaches it; 0 and "none" where no method works.',
      beware: 'for what a method costs: see the time of programs below.',
      sort: 'Probe',
      queries: [panels.row('max by (instance, probe, hook, method) (tacho_probe_attached{%s})' % selection)],
      columns: [
        { name: 'instance', title: 'Instance' },
        { name: 'probe', title: 'Probe' },
        { name: 'hook', title: 'Hook' },
        { name: 'method', title: 'Method' },
        { name: 'Value', title: 'Attached', properties: { unit: 'bool_yes_no' } },
      ],
    }),
  ],
};

local losses = {
  title: 'Losses and limits',
  panels: [
    panels.timeseries({
      title: 'Lost events',
      shows: 'Events per second that could not be counted, by probe and reason.',
      beware: 'for peer_overflow: those calls are counted, under the peer "other".',
      unit: 'ops',
      queries: [panels.query(s.rate('tacho_lost_events_total', '', 'probe, reason'), '{{instance}} {{probe}} {{reason}}')],
    }),
    panels.timeseries({
      title: 'Missed runs',
      shows: 'Runs of a BPF program per second that the kernel skipped because it was running on that CPU already, interrupted or preempted.',
      beware: 'on kernels that do not count misses of the method in use: they show 0. From Linux 7.0 on, runs of sockets are made up for by a second program.',
      unit: 'ops',
      queries: [panels.query(s.rate('tacho_probe_misses_total', '', 'probe'), '{{instance}} {{probe}}')],
    }),
    panels.timeseries({
      title: 'Fill of maps',
      shows: 'Entries of BPF maps as a share of their room. A full map loses events.',
      beware: 'for arrays of blocks, which are always full and are left out.',
      unit: 'percentunit',
      max: 1,
      queries: [panels.query(
        s.ratio(
          s.gauge('tacho_map_entries', 'map!~".+_blocks"', 'probe, map', 'max'),
          s.gauge('tacho_map_max_entries', 'map!~".+_blocks"', 'probe, map', 'max')
        ),
        '{{instance}} {{map}}'
      )],
    }),
    panels.timeseries({
      title: 'Targets',
      shows: 'Targets that are watched, and those per second that found no place (limits.max_targets) and are counted in the target "other".',
      beware: 'as a count of servers: configured names may stand for several.',
      unit: 'short',
      queries: [
        panels.query(s.gauge('tacho_targets'), '{{instance}}'),
        panels.query(s.rate('tacho_targets_overflowed_total'), '{{instance}} without a place, per second'),
      ],
    }),
  ],
};

local cost = {
  title: 'Own cost',
  panels: [
    panels.timeseries({
      title: 'CPU of the process',
      shows: 'CPU time of tacho in user space and its system calls, in cores.',
      beware: 'as the whole cost: BPF programs run in the time of the servers that are watched.',
      unit: 'short',
      queries: [panels.query(s.rate('process_cpu_seconds_total'), '{{instance}}')],
    }),
    panels.timeseries({
      title: 'CPU of BPF programs',
      shows: 'Time spent in BPF programs, in cores, by probe.',
      beware: withStatistics + '; measuring adds some 20 ns to each event.',
      unit: 'short',
      queries: [panels.query(s.rate('tacho_probe_run_seconds_total', '', 'probe'), '{{instance}} {{probe}}')],
    }),
    panels.timeseries({
      title: 'Time of a run',
      shows: 'Mean time of one run of a BPF program.',
      beware: withStatistics + '; it includes the measuring itself.',
      unit: 's',
      queries: [panels.query(
        s.ratio(
          s.rate('tacho_probe_run_seconds_total', '', 'program'),
          s.rate('tacho_probe_runs_total', '', 'program')
        ),
        '{{instance}} {{program}}'
      )],
    }),
    panels.timeseries({
      title: 'Memory',
      shows: 'Resident memory of tacho in user space.',
      beware: 'as the whole memory: maps of BPF programs belong to the kernel, 88 KiB a target on two CPUs.',
      unit: 'bytes',
      queries: [panels.query(s.gauge('process_resident_memory_bytes'), '{{instance}}')],
    }),
    panels.timeseries({
      title: 'Time of a scrape',
      shows: 'How long reading and writing the series of each collector took, and the whole scrape as Prometheus saw it.',
      beware: 'for the scrape that it is part of: collectors tell about the one before.',
      unit: 's',
      queries: [
        panels.query(s.gauge('tacho_scrape_collector_duration_seconds', '', 'collector', 'max'), '{{instance}} {{collector}}'),
        panels.query(s.gauge('scrape_duration_seconds', '', '', 'max'), '{{instance}} whole scrape'),
      ],
    }),
    panels.timeseries({
      title: 'Collectors that fail',
      shows: 'Collectors whose series were not complete.',
      beware: 'for hooks that never attached: their collector succeeds with what it has.',
      unit: 'short',
      queries: [panels.query('count by (instance) (tacho_scrape_collector_success{%s} == 0) or 0 * %s' % [selection, s.gauge('tacho_targets')], '{{instance}}')],
    }),
    panels.timeseries({
      title: 'Open files',
      shows: 'File descriptors of tacho as a share of its limit; every target takes some.',
      beware: 'for less than the time of a scrape.',
      unit: 'percentunit',
      max: 1,
      queries: [panels.query(s.ratio(s.gauge('process_open_fds'), s.gauge('process_max_fds')), '{{instance}}')],
    }),
    panels.timeseries({
      title: 'Series',
      shows: 'Samples of a scrape: what each exporter asks of Prometheus.',
      beware: 'as memory of Prometheus: that depends on how often series come and go.',
      unit: 'short',
      queries: [panels.query(s.gauge('scrape_samples_scraped'), '{{instance}}')],
    }),
  ],
};

function(config) dashboard.new(
  config,
  'tacho-health',
  'tacho / Exporter health',
  'Is tacho there, does it see everything, and what does it cost.',
  [
    dashboard.many('job', 'Job', 'label_values(tacho_build_info, job)'),
    dashboard.many('instance', 'Instance', 'label_values(tacho_build_info{job=~"$job"}, instance)'),
  ],
  [state, losses, cost]
)
