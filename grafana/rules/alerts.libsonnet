// Alerts; each has a section of its name in deploy/prometheus/runbook.md.
local conditions = import '../lib/conditions.libsonnet';

{
  local config = $._config { runbookUrl: null },  // its %s is not for these texts
  local without(families) = conditions.without(families, '%(selector)s'),

  local alert(name, severity, wait, expr, summary, description) = {
    alert: name,
    expr: expr % config,
    'for': wait,
    labels: { severity: severity },
    annotations: {
      summary: summary,
      description: description,
      runbook_url: $._config.runbookUrl % std.asciiLower(name),
    },
  },

  // What the slowest requests of the target wait for, where anatomy is measured.
  local waits = '{{ range printf "tacho_bottleneck{instance=%q} == 1" $labels.instance | query }}{{ if and (eq .Labels.target $labels.target) (eq .Labels.namespace $labels.namespace) (eq .Labels.pod $labels.pod) (eq .Labels.container $labels.container) }} Slow requests wait mostly for: {{ .Labels.part }} (tacho why).{{ end }}{{ end }}',

  local target = '{{ $labels.target }}{{ with $labels.pod }} (pod {{ . }}){{ end }} on {{ $labels.instance }}',

  local targets = [
    alert(
      'TachoTargetSaturated',
      'warning',
      '15m',
      |||
        instance_target:tacho_saturation:ratio5m{%(selector)s} > %(saturation)g
        and instance_target:tacho_requests:rate5m{%(selector)s} > %(minimumRate)g
      |||,
      'A server is saturated.',
      target + ' has been {{ $value | humanizePercentage }} saturated for 15 minutes; more load will queue.' + waits,
    ),
    alert(
      'TachoQueueingDominates',
      'warning',
      '10m',
      |||
        instance_target:tacho_request_queue_per_duration:ratio_rate5m{%(selector)s} > %(queueShare)g
        and instance_target:tacho_request_duration_seconds:mean5m{%(selector)s} > %(minimumSeconds)g
        and instance_target:tacho_requests:rate5m{%(selector)s} > %(minimumRate)g
      |||
      + without(['tacho_request_queue_seconds', 'tacho_request_duration_seconds']),
      'Requests wait longer than they are worked on.',
      'Requests to ' + target + ' spend {{ $value | humanizePercentage }} of their time waiting to be read.' + waits,
    ),
    alert(
      'TachoDurationRegressed',
      'warning',
      '15m',
      |||
        (
          instance_target:tacho_request_duration_seconds:p99_rate5m{%(selector)s}
            / avg_over_time(instance_target:tacho_request_duration_seconds:p99_rate5m{%(selector)s}[1h] offset 1d)
        ) > %(regressionFactor)g
        and instance_target:tacho_request_duration_seconds:p99_rate5m{%(selector)s} > %(minimumSeconds)g
        and instance_target:tacho_requests:rate5m{%(selector)s} > %(minimumRate)g
      |||
      + without(['tacho_request_duration_seconds']),
      'The slowest requests are much slower than a day ago.',
      'The 99th percentile of the duration of ' + target + ' is {{ $value | humanize }} times what it was a day ago.' + waits,
    ),
    alert(
      'TachoRequestsUnanswered',
      'warning',
      '10m',
      |||
        instance_target:tacho_requests_unanswered_per_requests:ratio_rate5m{%(selector)s} > %(unansweredShare)g
        and instance_target:tacho_requests:rate5m{%(selector)s} + rate(tacho_requests_unanswered_total{%(selector)s}[5m]) > %(minimumRate)g
      |||
      + without(['tacho_requests_unanswered_total', 'tacho_requests_total']),
      'Connections end with a request unanswered.',
      '{{ $value | humanizePercentage }} of the requests to ' + target + ' end without a reply.',
    ),
    alert(
      'TachoTargetAbsent',
      'warning',
      '10m',
      |||
        sum by (job, target) (rate(tacho_requests_total{%(selector)s, %(absentSelector)s}[10m] offset 1h)) > 0
        unless on (job, target) tacho_requests_total{%(selector)s, %(absentSelector)s}
        unless on (job) up{%(selector)s} == 0
      |||,
      'A server that answered requests an hour ago is gone.',
      '{{ $labels.target }} answered {{ $value | humanize }} requests per second an hour ago and is on no node any more.',
    ),
  ],

  local exporter = [
    alert(
      'TachoExporterDown',
      'warning',
      '5m',
      'up{%(selector)s} == 0',
      'tacho does not answer.',
      'Prometheus cannot scrape tacho on {{ $labels.instance }}: nothing on that node is observed.',
    ),
    alert(
      'TachoExporterAbsent',
      'warning',
      '10m',
      'absent(up{%(selector)s})',
      'No tacho is scraped at all.',
      'Prometheus has no target whose job is that of tacho: it was removed, or service discovery does not find it.',
    ),
    alert(
      'TachoHookMissing',
      'warning',
      '10m',
      'max by (job, instance, probe, hook) (tacho_probe_attached{%(selector)s}) == 0',
      'A hook of tacho is not attached.',
      'On {{ $labels.instance }} no method could attach the hook {{ $labels.hook }} of the probe {{ $labels.probe }}: what it would see is missing.',
    ),
    alert(
      'TachoCollectorFailing',
      'warning',
      '10m',
      'tacho_scrape_collector_success{%(selector)s} == 0',
      'Some series of tacho are incomplete.',
      'The collector {{ $labels.collector }} on {{ $labels.instance }} cannot read all of its series.',
    ),
    alert(
      'TachoConfigRefused',
      'warning',
      '5m',
      'tacho_config_last_reload_successful{%(selector)s} == 0',
      'tacho refused its configuration file.',
      'tacho on {{ $labels.instance }} found its configuration file bad and goes on with the one before.',
    ),
    // A peer beyond max_peers is counted under "other": that is no loss.
    alert(
      'TachoEventsLost',
      'warning',
      '10m',
      'rate(tacho_lost_events_total{%(selector)s, reason!~"peer_overflow|skipped"}[5m]) > 0',
      'tacho cannot count every event.',
      'The probe {{ $labels.probe }} on {{ $labels.instance }} loses {{ $value | humanize }} events per second ({{ $labels.reason }}).',
    ),
    // Arrays of blocks are full by nature.
    alert(
      'TachoMapNearlyFull',
      'warning',
      '15m',
      |||
        tacho_map_entries{%(selector)s, map!~".+_blocks"}
          / (tacho_map_max_entries{%(selector)s, map!~".+_blocks"} > 0) > %(mapFill)g
      |||,
      'A map of tacho is nearly full.',
      'The map {{ $labels.map }} of the probe {{ $labels.probe }} on {{ $labels.instance }} is {{ $value | humanizePercentage }} full; beyond that, events are lost.',
    ),
    alert(
      'TachoTargetsOverflowed',
      'info',
      '0m',
      'increase(tacho_targets_overflowed_total{%(selector)s}[1h]) > 0',
      'There are more targets than limits.max_targets.',
      '{{ $value | humanize }} targets on {{ $labels.instance }} found no place within an hour and are counted together as "other".',
    ),
  ],

  prometheusAlerts+:: {
    groups+: [
      { name: 'tacho.targets.alerts', rules: targets },
      { name: 'tacho.exporter.alerts', rules: exporter },
    ],
  },
}
