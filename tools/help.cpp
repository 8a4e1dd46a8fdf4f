#include "tools/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "autotune/error.h"
#include "tuner/model/suggest.h"

namespace autotune {

// Made by the build from the files of docs/help.
namespace help_texts {
extern const std::string_view problem, config, budget, database, compare, json, exit_codes, output, environment,
    emulator, interchange, dispatcher, sharing, chains, search, op_format;
}

std::string_view HelpPage::about() const noexcept {
    const std::string_view line = text.substr(0, text.find('\n'));
    return line.substr(std::min(line.size(), line.find_first_not_of("# ")));
}

std::span<const HelpPage> help_pages() {
    static const std::array pages{
        HelpPage{"problem", help_texts::problem},         HelpPage{"config", help_texts::config},
        HelpPage{"budget", help_texts::budget},           HelpPage{"database", help_texts::database},
        HelpPage{"compare", help_texts::compare},         HelpPage{"json", help_texts::json},
        HelpPage{"exit-codes", help_texts::exit_codes},   HelpPage{"output", help_texts::output},
        HelpPage{"environment", help_texts::environment}, HelpPage{"emulator", help_texts::emulator},
        HelpPage{"interchange", help_texts::interchange}, HelpPage{"dispatcher", help_texts::dispatcher},
        HelpPage{"sharing", help_texts::sharing},         HelpPage{"chains", help_texts::chains},
        HelpPage{"search", help_texts::search},           HelpPage{"op-format", help_texts::op_format},
    };
    return pages;
}

std::string_view exit_codes_text() {
    return "Exit codes: 0 done; 1 bad use or input; 2 nothing valid was found; 3 no usable device or compiler; 4 a "
           "check that was\n"
           "asked for failed; 5 the database could not be read or written; 70 an internal error; 129, 130 or 143 "
           "interrupted\n"
           "by a hang-up, Ctrl-C or SIGTERM, the work saved.\n";
}

std::string help_on(std::string_view topic, std::span<const std::string> others) {
    std::vector<std::string> topics{others.begin(), others.end()};
    for (const HelpPage& page : help_pages()) {
        if (page.topic == topic) return std::string{page.text};
        topics.emplace_back(page.topic);
    }
    throw Error{Error::Kind::usage, fmt::format("there is no help on '{}'{}", topic, did_you_mean(topic, topics)),
                "autotune help"};
}

}  // namespace autotune
