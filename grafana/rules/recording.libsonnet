// Recording rules, named level:metric:operations. The level instance_target keeps every label of a target's series.
{
  local config = $._config,
  local rule(record, expr) = { record: 'instance_target:' + record, expr: expr % config },
  // Without requests there is no quantile; a NaN would spoil every average over it.
  // From the native histogram where there is one: it is finer.
  local quantile(q) =
    |||
      (histogram_quantile(%g, rate(tacho_request_duration_seconds{%%(selector)s}[5m]))
        or histogram_quantile(%g, rate(tacho_request_duration_seconds_bucket{%%(selector)s}[5m]))) >= 0
    ||| % [q, q],
  local mean(quantity) =
    |||
      rate(tacho_request_%(quantity)s_seconds_sum{%%(selector)s}[5m])
        / (rate(tacho_request_%(quantity)s_seconds_count{%%(selector)s}[5m]) > 0)
    ||| % { quantity: quantity },

  // By part; `requests` are those that it is about.
  local partMean(time, requests) =
    |||
      rate(%s{%%(selector)s}[5m])
        / ignoring (part) group_left ()
        (%s > 0)
    ||| % [time, requests],

  prometheusRules+:: {
    groups+: [
      {
        name: 'tacho.targets',
        rules: [
          rule('tacho_requests:rate5m', 'rate(tacho_requests_total{%(selector)s}[5m])'),
          rule('tacho_request_duration_seconds:mean5m', mean('duration')),
          rule('tacho_request_queue_seconds:mean5m', mean('queue')),
          rule('tacho_request_service_seconds:mean5m', mean('service')),
          rule('tacho_request_time_seconds:mean5m', partMean('tacho_request_time_seconds_total', 'sum without (mode) (rate(tacho_request_serving_total{mode!="unknown", %(selector)s}[5m]))')),
          rule('tacho_slow_request_time_seconds:mean5m', partMean('tacho_slow_request_time_seconds_total', 'rate(tacho_slow_requests_total{%(selector)s}[5m])')),
          rule('tacho_request_duration_seconds:p50_rate5m', quantile(0.5)),
          rule('tacho_request_duration_seconds:p99_rate5m', quantile(0.99)),
          rule('tacho_request_queue_per_duration:ratio_rate5m', |||
            rate(tacho_request_queue_seconds_sum{%(selector)s}[5m])
              / (rate(tacho_request_duration_seconds_sum{%(selector)s}[5m]) > 0)
          |||),
          rule('tacho_requests_unanswered_per_requests:ratio_rate5m', |||
            rate(tacho_requests_unanswered_total{%(selector)s}[5m])
              / (rate(tacho_requests_total{%(selector)s}[5m]) + rate(tacho_requests_unanswered_total{%(selector)s}[5m]) > 0)
          |||),
          rule('tacho_idle_per_threads:ratio_rate5m', |||
            rate(tacho_idle_seconds_total{%(selector)s}[5m])
              / (avg_over_time(tacho_threads{%(selector)s}[5m]) > 0)
          |||),
          rule('tacho_saturation:ratio5m', 'avg_over_time(tacho_saturation_ratio{%(selector)s}[5m])'),
        ],
      },
    ],
  },
}
