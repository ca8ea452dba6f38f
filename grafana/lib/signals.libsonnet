// PromQL of the signals, for one selection of series and one way of grouping: new('job=~"$job"', 'target').
// Every quotient leaves out what would be a division by zero, so that no panel shows NaN as if it were a value.
{
  new(selection, by, range='$__rate_interval'):: {
    local s = self,
    local sel(more) = '{' + selection + (if more == '' then '' else ', ' + more) + '}',
    local all = std.join(', ', if by == '' then [] else [by]),

    // Sum of the rates of a counter; `more` are further matchers, `labels` further labels to keep.
    rate(metric, more='', labels='')::
      'sum by (%s) (rate(%s%s[%s]))' % [std.join(', ', std.filter(function(x) x != '', [all, labels])), metric, sel(more), range],
    increase(metric, more='', labels='')::
      'sum by (%s) (increase(%s%s[%s]))' % [std.join(', ', std.filter(function(x) x != '', [all, labels])), metric, sel(more), range],
    // Sum (or `fold`) of a gauge.
    gauge(metric, more='', labels='', fold='sum')::
      '%s by (%s) (%s%s)' % [fold, std.join(', ', std.filter(function(x) x != '', [all, labels])), metric, sel(more)],

    ratio(above, below):: '%s\n  / (%s > 0)' % [above, below],
    // Mean of a histogram, `quantity` being its name without _bucket.
    mean(quantity, more='', labels='')::
      s.ratio(s.rate(quantity + '_sum', more, labels), s.rate(quantity + '_count', more, labels)),
    // Seconds of a request by part, of a counter with that label; `requests` counts those that it is about.
    meanByPart(time, requests, more='')::
      '%s\n  / ignoring (part) group_left ()\n  (%s > 0)' % [s.rate(time, '', 'part'), s.rate(requests, more)],
    // From the native histogram where there is one: it is finer.
    quantile(q, quantity, more='', labels='')::
      '(histogram_quantile(%g, %s)\n  or histogram_quantile(%g, %s))' % [
        q,
        s.rate(quantity, more, labels),
        q,
        s.rate(quantity + '_bucket', more, if labels == '' then 'le' else labels + ', le'),
      ],

    requests:: s.rate('tacho_requests_total'),
    // Of a family that appears with its first event (METRICS.md): 0 before that.
    orNone(expr):: '%s\n  or 0 * %s' % [expr, s.requests],
    // Share of a request's time that it waited to be read.
    queueShare:: s.ratio(s.rate('tacho_request_queue_seconds_sum'), s.rate('tacho_request_duration_seconds_sum')),
    unansweredShare::
      s.ratio(
        s.rate('tacho_requests_unanswered_total'),
        '%s + %s' % [s.rate('tacho_requests_total'), s.rate('tacho_requests_unanswered_total')]
      ),
    // Share of their time that serving threads wait for work.
    idleShare::
      s.ratio(
        s.rate('tacho_idle_seconds_total'),
        'sum by (%s) (avg_over_time(tacho_threads%s[%s]))' % [all, sel(''), range]
      ),
    // Of several targets together: their mean.
    saturation:: 'avg by (%s) (avg_over_time(tacho_saturation_ratio%s[%s]))' % [all, sel(''), range],
    // Variance of the intervals between operations (eq. 2 of the ISPASS paper), from the counters.
    variance(direction)::
      local more = 'direction="%s"' % direction;
      '%s\n  - (%s) ^ 2' % [
        s.ratio(s.rate('tacho_socket_interval_seconds_squared_total', more), s.rate('tacho_socket_intervals_total', more)),
        s.ratio(s.rate('tacho_socket_interval_seconds_total', more), s.rate('tacho_socket_intervals_total', more)),
      ],
    // Variance over the squared mean.
    cv2(direction)::
      local more = 'direction="%s"' % direction;
      '%s\n  * %s\n  / (%s > 0) ^ 2\n  - 1' % [
        s.rate('tacho_socket_interval_seconds_squared_total', more),
        s.rate('tacho_socket_intervals_total', more),
        s.rate('tacho_socket_interval_seconds_total', more),
      ],
  },
}
