// Panels of the kinds that the dashboards use, in the form of Grafana's dashboard JSON (schema version 39).
//
// A panel is written as {title, shows, beware, unit, queries, w, h}: `shows` and `beware` (when not to trust it) make
// the description, `queries` are made by query(), instant() and heat(), w and h are in Grafana's grid of 24 columns.
local datasource = { type: 'prometheus', uid: '${datasource}' };

local query(expr, legend) = {
  datasource: datasource,
  editorMode: 'code',
  expr: expr,
  legendFormat: legend,
  range: true,
};

local letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

local panel(type, spec) = {
  type: type,
  title: spec.title,
  description: spec.shows + '\n\n**Not to be trusted** ' + spec.beware,
  datasource: datasource,
  gridPos: { x: 0, y: 0, w: spec.w, h: spec.h },
  targets: std.mapWithIndex(function(index, target) target { refId: letters[index] }, spec.queries),
  fieldConfig: { defaults: { unit: spec.unit, color: { mode: 'palette-classic' } }, overrides: [] },
};

local thresholds(steps) = {
  mode: 'absolute',
  steps: [{ color: step[0], value: step[1] } for step in steps],
};

{
  query:: query,
  // The value of now only.
  instant(expr, legend=''):: query(expr, legend) { range: false, instant: true },
  // Instant, one row of a table a series.
  row(expr):: self.instant(expr) { format: 'table' },
  // Buckets of a histogram: `sum by (le)`.
  heat(expr):: query(expr, '{{le}}') { format: 'heatmap' },
  thresholds:: thresholds,

  timeseries(spec):: panel('timeseries', { w: 12, h: 8 } + spec) {
    fieldConfig+: { defaults+: {
      // A difference may be negative.
      [if !std.get(spec, 'signed', false) then 'min']: 0,
      [if 'max' in spec then 'max']: spec.max,
      custom: {
        drawStyle: 'line',
        lineWidth: 1,
        fillOpacity: if std.get(spec, 'stack', false) then 40 else 10,
        showPoints: 'never',
        stacking: { mode: if std.get(spec, 'stack', false) then 'normal' else 'none', group: 'A' },
      },
    } },
    options: {
      legend: { displayMode: 'table', placement: 'bottom', showLegend: true, calcs: ['lastNotNull', 'max'] },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
  },

  stat(spec):: panel('stat', { w: 4, h: 4 } + spec) {
    fieldConfig+: { defaults+: {
      color: { mode: 'thresholds' },
      thresholds: thresholds(std.get(spec, 'steps', [['text', null]])),
    } },
    options: {
      colorMode: 'value',
      graphMode: 'area',
      justifyMode: 'auto',
      orientation: 'auto',
      percentChangeColorMode: 'standard',
      showPercentChange: false,
      wideLayout: true,
      textMode: 'auto',
      reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
    },
  },

  // `columns` are {name: {title, unit, …}} by the name of a label or of a value ("Value #A"); `hidden` are left out.
  table(spec):: panel('table', { w: 24, h: 10 } + spec) {
    fieldConfig+: {
      defaults+: { custom: { align: 'auto', cellOptions: { type: 'auto' }, filterable: true, inspect: false } },
      overrides: [
        {
          matcher: { id: 'byName', options: column.title },
          properties: [{ id: id, value: column.properties[id] } for id in std.objectFields(column.properties)],
        }
        for column in spec.columns
        if 'properties' in column
      ],
    },
    transformations: [
      { id: 'merge', options: {} },
      {
        id: 'organize',
        options: {
          excludeByName: { [name]: true for name in ['Time'] + std.get(spec, 'hidden', []) },
          indexByName: {
            [spec.columns[index].name]: index
            for index in std.range(0, std.length(spec.columns) - 1)
          },
          renameByName: { [column.name]: column.title for column in spec.columns },
        },
      },
    ],
    options: {
      frameIndex: 0,
      showHeader: true,
      cellHeight: 'sm',
      sortBy: [{ displayName: spec.sort, desc: true }],
      footer: { show: false, countRows: false, reducer: ['sum'] },
    },
  },

  heatmap(spec):: panel('heatmap', { w: 12, h: 9 } + spec) {
    fieldConfig: { defaults: { unit: spec.unit, custom: { hideFrom: { legend: false, tooltip: false, viz: false } } }, overrides: [] },
    options: {
      calculate: false,
      showValue: 'never',
      cellGap: 1,
      color: { mode: 'scheme', scheme: 'Oranges', steps: 64, fill: 'dark-orange', exponent: 0.5, reverse: false },
      exemplars: { color: 'rgba(255,0,255,0.7)' },
      filterValues: { le: 1e-9 },
      legend: { show: true },
      rowsFrame: { layout: 'auto' },
      tooltip: { mode: 'single', yHistogram: true },
      yAxis: { axisPlacement: 'left', reverse: false, unit: spec.unit },
    },
  },

  // States over time: `states` are [value, text, color].
  timeline(spec):: panel('state-timeline', { w: 24, h: 7 } + spec) {
    fieldConfig+: { defaults+: {
      color: { mode: 'thresholds' },
      thresholds: thresholds([['text', null]]),
      custom: { fillOpacity: 70, lineWidth: 0 },
      mappings: [{
        type: 'value',
        options: {
          [std.toString(spec.states[index][0])]: {
            text: spec.states[index][1],
            color: spec.states[index][2],
            index: index,
          }
          for index in std.range(0, std.length(spec.states) - 1)
        },
      }],
    } },
    options: {
      mergeValues: true,
      showValue: 'never',
      alignValue: 'left',
      rowHeight: 0.8,
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] },
      tooltip: { mode: 'single', sort: 'none' },
    },
  },
}
