#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <span>
#include <string_view>

#include "autotune/error.h"
#include "tools/foreign_error.h"
#include "tools/interrupt.h"
#include "tools/json_events.h"
#include "tools/request.h"
#include "tools/startup.h"
#include "tools/subcommands.h"

using namespace autotune;

namespace {

/// A result that stdout did not take is no result. A reader that has gone away, as `head` does, has what it wanted, and
/// who closed stdout wants none.
int checked(const Console& console, int code) {
    const int error = console.stdout_error();
    if (error == 0 || error == EPIPE || error == EBADF) return code;
    throw Error{Error::Kind::store, fmt::format("the result could not be written to stdout: {}", std::strerror(error))};
}

int run(int count, char** arguments) {
    const Parsed parsed = parse_request(count, arguments);
    if (!parsed.request) {
        Console console{{.progress = ProgressMode::none}};
        console.raw(parsed.text);
        return checked(console, 0);
    }
    Console console{parsed.request->console};
    const int code = subcommand_named(parsed.request->subcommand)->run(*parsed.request, console);
    return checked(console, code);
}

/// On stderr for people, with --json on stdout for programs too. Asked of the words: it may be they that are wrong.
int report(std::span<char*> words, const std::string& message, const std::string& help, Error::Kind kind) {
    const bool json = std::ranges::any_of(words, [](const char* word) { return std::string_view{word} == "--json"; });
    Console console{{.progress = ProgressMode::none, .json = json}};
    console.error(message, help);
    console.json_line(json_error(message, help, exit_code(kind)));
    return exit_code(kind);
}

}  // namespace

int main(int count, char** arguments) {
    prepare_process();
    watch_interrupts();
    const std::span words{arguments, static_cast<std::size_t>(count)};
    try {
        return run(count, arguments);
    } catch (const Error& e) {
        const int code = report(words, e.what(), e.help(), e.kind());
        return e.kind() == Error::Kind::interrupted && interrupted() ? interrupted() : code;
    } catch (const std::exception& e) {
        const Error told = foreign_error(e);
        return report(words, told.what(), told.help(), told.kind());
    }
}
