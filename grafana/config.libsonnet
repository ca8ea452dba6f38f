// What to change when importing the mixin: (import 'mixin.libsonnet') + {_config+:: {saturation: 0.8}}.
{
  _config+:: {
    // Selects the series of tacho's scrapes in rules and alerts. A PodMonitor's job is NAMESPACE/NAME.
    selector: 'job=~"(.+/)?tacho"',

    // Alerts on targets stay silent below so many requests a second, and, where time is judged, below so many seconds
    // a request: a reply within microseconds may well have waited for half of them.
    minimumRate: 1,
    minimumSeconds: 0.005,

    saturation: 0.9,
    queueShare: 0.5,
    // Buckets are one octave wide: the estimate of a quantile can double while the truth barely moves, so never below 2.
    regressionFactor: 2.5,
    unansweredShare: 0.05,
    mapFill: 0.9,

    // Which targets are missed when they are gone. Pods come and go by design, so only what is not of a pod.
    absentSelector: 'pod=""',

    // %s is the name of the alert in lower case.
    runbookUrl: 'deploy/prometheus/runbook.md#%s',

    dashboards: {
      tags: ['tacho'],
      refresh: '30s',
      from: 'now-1h',
    },
  },
}
