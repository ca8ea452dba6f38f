#include "scrape/judgements.h"

#include "scrape/diagnosis.h"
#include "scrape/shed_report.h"

namespace tacho::scrape {

const std::array<Judgement, 5> kJudgements{{
    {saturation_families,
     [](const Findings& found) -> std::optional<metrics::Row> {
       if (!found.saturation) {
         return {};
       }
       metrics::Row row;
       row.values = {metrics::Value::number(found.saturation->ratio), metrics::Value::number(found.saturation->error)};
       return row;
     }},
    {bottleneck_families,
     [](const Findings& found) -> std::optional<metrics::Row> {
       if (found.bottlenecks == 0) {
         return {};
       }
       return bottleneck_row(found.bottleneck, found.bottlenecks);
     }},
    {condition_families,
     [](const Findings& found) -> std::optional<metrics::Row> {
       metrics::Row row;
       for (const std::optional<bool>& on : found.conditions) {
         row.values.push_back(on ? metrics::Value::count(*on ? 1 : 0) : metrics::Value::absent());
       }
       return row;
     }},
    {overhead_families,
     [](const Findings& found) -> std::optional<metrics::Row> { return overhead_row(found.own_time); }, true},
    {shed_families,
     [](const Findings& found) -> std::optional<metrics::Row> {
       if (!found.shed_level) {
         return {};
       }
       metrics::Row row;
       row.values = {metrics::Value::count(*found.shed_level)};
       return row;
     }},
}};

}  // namespace tacho::scrape
