#ifndef AUTOTUNE_TOOLS_TAKEN_IN_TEXT_H
#define AUTOTUNE_TOOLS_TAKEN_IN_TEXT_H

#include <span>
#include <string>

#include "cache/sharing/taking_in.h"
#include "tools/console.h"

namespace autotune {

/// `node01.db  812 records: 640 new, 120 better, 52 not better, 3 refused`
std::string taken_in_line(const TakenIn& report, std::size_t width);

/// A line a file, the first rows that were refused with their reasons, and `event` with --json. Returns the exit code:
/// 2 where there were rows and each of them was refused.
int tell_taken_in(std::span<const TakenIn> reports, const std::string& event, bool dry_run, Console& console);

}  // namespace autotune
#endif
