#ifndef AUTOTUNE_TESTS_MADE_UP_SPACE_H
#define AUTOTUNE_TESTS_MADE_UP_SPACE_H

#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "tuner/replay/recorded_space.h"

namespace autotune {

using Times = std::function<double(int a, int b, int c)>;

/// A space of 16 x 12 x 2 configs, those with a + b = 20 left out; a time below 0 fails. The parameters stand in the
/// order of `names`.
inline RecordedSpace made_up_space(const Times& time_ms, const std::string& names = "ABC",
                                   const std::string& device = "one") {
    std::string text = "# kernel: toy\n# device: " + device + "\n";
    const std::map<char, int> counts{{'A', 16}, {'B', 12}, {'C', 2}};
    for (const char name : names) {
        text += std::string{"# values "} + name + ":";
        for (int i = 0; i < counts.at(name); ++i) text += " " + std::to_string(i);
        text += "\n";
    }
    for (const char name : names) text += std::string{name} + ",";
    text += "time_ms,sd_ms,cost_ms,status\n";
    for (int a = 0; a < 16; ++a)
        for (int b = 0; b < 12; ++b)
            for (int c = 0; c < 2; ++c) {
                if (a + b == 20) continue;
                const std::map<char, int> values{{'A', a}, {'B', b}, {'C', c}};
                for (const char name : names) text += std::to_string(values.at(name)) + ",";
                const double time = time_ms(a, b, c);
                char number[40];
                std::snprintf(number, sizeof number, "%.17g", time);
                text += time < 0 ? std::string{"error,,,failed\n"} : std::string{number} + ",,,ok\n";
            }
    return RecordedSpace::parse(text, "toy");
}

/// Narrow, with a switch that moves its bottom.
inline double valley(int a, int b, int c) {
    const double x = a - (c ? 11 : 4), y = b - 0.5 * a - 2;
    return std::exp(0.05 * x * x + 0.2 * y * y) + 0.3 * c;
}

}  // namespace autotune
#endif
