// Which conditions judge which families; conditions.json is written by unit_scrape from exporter/scrape/condition_table.cpp.
local conditions = import '../conditions.json';

local judging(families) = [
  condition
  for condition in conditions
  if std.length(std.setInter(std.set(families), std.set(condition.invalidates))) > 0
];

{
  // Matcher of the conditions under which one of the families does not mean what it says.
  matcher(families):: 'condition=~"%s"' % std.join('|', [condition.name for condition in judging(families)]),

  // What follows an expression of which targets that a condition speaks against are to be left out. A condition's series has
  // the labels of the target's other series and `condition`: no list of labels has to be kept.
  without(families, selection)::
    'unless ignoring (condition) tacho_target_condition{%s, %s} == 1' % [selection, self.matcher(families)],

  // "multiplexed: …; lost_events: …", of the conditions about one of the families; of all of them without any.
  explained(families=null):: std.join('; ', [
    '%s: %s' % [condition.name, condition.meaning]
    for condition in if families == null then conditions else judging(families)
  ]),
}
