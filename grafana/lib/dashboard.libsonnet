// A dashboard from rows of panels: variables, links, and where everything goes.
local datasource = { type: 'prometheus', uid: '${datasource}' };

// Places panels from left to right, wrapping at 24 columns; [panels with gridPos, height].
local flow(panels, top) =
  local placed = std.foldl(
    function(state, panel)
      local wraps = state.x + panel.gridPos.w > 24;
      local x = if wraps then 0 else state.x;
      local y = if wraps then state.bottom else state.y;
      {
        x: x + panel.gridPos.w,
        y: y,
        bottom: std.max(state.bottom, y + panel.gridPos.h),
        panels: state.panels + [panel { gridPos+: { x: x, y: y } }],
      },
    panels,
    { x: 0, y: top, bottom: top, panels: [] }
  );
  placed { height: placed.bottom - top };

local stacked(rows) = std.foldl(
  function(state, row)
    local header = {
      type: 'row',
      title: row.title,
      collapsed: false,
      gridPos: { x: 0, y: state.bottom, w: 24, h: 1 },
      panels: [],
    };
    local placed = flow(row.panels, state.bottom + 1);
    { bottom: placed.bottom, panels: state.panels + [header] + placed.panels },
  rows,
  { bottom: 0, panels: [] }
).panels;

local variable(name, label, expr) = {
  name: name,
  label: label,
  type: 'query',
  datasource: datasource,
  query: { query: expr, refId: 'StandardVariableQuery' },
  refresh: 2,
  sort: 1,
  hide: 0,
};

{
  // The data source, which every other variable and panel uses.
  datasourceVariable:: {
    name: 'datasource',
    label: 'Data source',
    type: 'datasource',
    query: 'prometheus',
    refresh: 1,
    hide: 0,
  },
  one(name, label, expr):: variable(name, label, expr) { multi: false, includeAll: false },
  // `all` is the regular expression that stands for all values; `.*` also matches series without the label.
  many(name, label, expr, all='.+'):: variable(name, label, expr) {
    multi: true,
    includeAll: true,
    allValue: all,
    current: { text: 'All', value: '$__all' },
  },
  choice(name, label, values):: {
    name: name,
    label: label,
    type: 'custom',
    query: std.join(',', values),
    options: [{ text: value, value: value, selected: value == values[0] } for value in values],
    current: { text: values[0], value: values[0] },
    multi: false,
    includeAll: false,
    hide: 0,
  },

  new(config, uid, title, description, variables, rows):: {
    uid: uid,
    title: title,
    description: description,
    tags: config.tags,
    editable: false,
    schemaVersion: 39,
    version: 1,
    timezone: 'browser',
    refresh: config.refresh,
    time: { from: config.from, to: 'now' },
    graphTooltip: 1,
    annotations: { list: [] },
    links: [{
      type: 'dashboards',
      title: 'tacho',
      tags: config.tags,
      asDropdown: false,
      keepTime: true,
      includeVars: true,
      targetBlank: false,
      icon: 'external link',
      tooltip: '',
      url: '',
    }],
    templating: { list: [$.datasourceVariable] + variables },
    panels: std.mapWithIndex(function(index, panel) panel { id: index + 1 }, stacked(rows)),
  },
}
