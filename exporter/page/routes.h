#pragma once

#include <string>
#include <vector>

#include "boundary/answer.h"
#include "web/message.h"

namespace tacho::page {

/// The live page at /, its files below /assets/, and the JSON below /api/v1/ that it and `tacho top` read. The
/// collector must outlive the server.
std::vector<web::Route> routes(boundary::Collector& collector, const std::string& telemetry_path);

/// The collector's document for the question: 200, or the error of its status.
web::Response answered(boundary::Collector& collector, const boundary::Question& question);

}  // namespace tacho::page
