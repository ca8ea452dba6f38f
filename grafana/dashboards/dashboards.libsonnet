{
  local config = $._config.dashboards,
  grafanaDashboards+:: {
    'tacho-overview.json': (import 'overview.libsonnet')(config),
    'tacho-target.json': (import 'target.libsonnet')(config),
    'tacho-health.json': (import 'health.libsonnet')(config),
  },
}
