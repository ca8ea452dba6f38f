// One target from its golden signals down to what they are made of.
local dashboard = import '../lib/dashboard.libsonnet';

local scope = 'job=~"$job", instance=~"$instance"';
local selection = scope + ', target=~"$target", pod=~"$pod", container=~"$container"';

function(config) dashboard.new(
  config,
  'tacho-target',
  'tacho / Target',
  'One target: golden signals, queueing against service, dependencies, polling, intervals, and what to doubt.',
  [
    dashboard.many('job', 'Job', 'label_values(tacho_build_info, job)'),
    dashboard.many('instance', 'Instance', 'label_values(tacho_build_info{job=~"$job"}, instance)'),
    dashboard.one('target', 'Target', 'label_values(tacho_target_info{%s}, target)' % scope),
    dashboard.many('pod', 'Pod', 'label_values(tacho_target_info{%s, target=~"$target"}, pod)' % scope, '.*'),
    dashboard.many('container', 'Container', 'label_values(tacho_target_info{%s, target=~"$target", pod=~"$pod"}, container)' % scope, '.*'),
  ],
  (import 'target_requests.libsonnet')(selection)
  + (import 'target_anatomy.libsonnet')(selection)
  + (import 'target_threads.libsonnet')(selection)
)
