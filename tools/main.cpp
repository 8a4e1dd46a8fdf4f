#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "autotune/error.h"
#include "tools/interrupt.h"
#include "tools/request.h"
#include "tools/startup.h"
#include "tools/subcommands.h"

using namespace autotune;

namespace {

int run(int count, char** arguments) {
    const Parsed parsed = parse_request(count, arguments);
    if (!parsed.request) {
        std::fputs(parsed.text.c_str(), stdout);
        return 0;
    }
    Console console{parsed.request->console};
    return subcommand_named(parsed.request->subcommand)->run(*parsed.request, console);
}

}  // namespace

int main(int count, char** arguments) {
    prepare_process();
    watch_interrupts();
    try {
        return run(count, arguments);
    } catch (const Error& e) {
        Console{{.progress = ProgressMode::none}}.error(e.what(), e.help());
        return exit_code(e.kind());
    } catch (const std::exception& e) {
        Console{{.progress = ProgressMode::none}}.error(fmt::format("a fault of autotune's own: {}", e.what()),
                                                        "report it with the output of: autotune doctor --json");
        return exit_code(Error::Kind::internal);
    }
}
