// The mixin of tacho, as users of jsonnet import it; `grafana/generate` writes the committed JSON and YAML from it.
(import 'config.libsonnet')
+ (import 'dashboards/dashboards.libsonnet')
+ (import 'rules/recording.libsonnet')
+ (import 'rules/alerts.libsonnet')
