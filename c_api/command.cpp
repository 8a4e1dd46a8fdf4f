// The part of the C API that runs subcommands.
#include <string>
#include <string_view>
#include <vector>

#include "autotune/autotune.h"
#include "c_api/guarded.h"
#include "c_api/output.h"
#include "tools/console.h"
#include "tools/interrupt.h"
#include "tools/request.h"
#include "tools/subcommands.h"
#include "tools/version.h"

namespace autotune::c_api {
namespace {

/// What a command says goes to the callback; the last error is kept for its status.
class CommandOutput {
public:
    CommandOutput(autotune_output call, void* context) noexcept : output_{call, context} {}

    ConsoleOptions console(ConsoleOptions options) {
        options.progress = ProgressMode::none;
        options.colour = false;
        options.sink = [this](ConsoleStream stream, const std::string& text) { take(stream, text); };
        return options;
    }
    Output& output() noexcept { return output_; }
    const std::string& last_error() const noexcept { return last_error_; }

private:
    void take(ConsoleStream stream, const std::string& text) {
        constexpr std::string_view mark = "error: ";
        if (stream == ConsoleStream::notice && text.starts_with(mark))
            last_error_ = text.substr(mark.size(), text.find('\n') - mark.size());
        output_.text(stream == ConsoleStream::result ? AUTOTUNE_RESULT : AUTOTUNE_NOTICE, text);
    }

    Output output_;
    std::string last_error_;
};

int run(const std::vector<const char*>& words, CommandOutput& output) {
    Parsed parsed = parse_request(static_cast<int>(words.size()), words.data());
    if (!parsed.request) {
        Console{output.console({})}.raw(parsed.text);
        return AUTOTUNE_OK;
    }
    parsed.request->console = output.console(parsed.request->console);
    Console console{parsed.request->console};
    const StopScope scope{[&output] { return output.output().stopped(); }};
    return subcommand_named(parsed.request->subcommand)->run(*parsed.request, console);
}

}  // namespace
}  // namespace autotune::c_api

using namespace autotune::c_api;

int autotune_command(size_t word_count, const char* const* words, autotune_output output, void* context) {
    return guarded([&] {
        constexpr std::size_t most_words = 100'000;
        if (!words && word_count > 0) throw misuse("words is a null pointer");
        if (word_count > most_words) throw misuse("a command of more than 100000 words");
        std::vector<const char*> all{"autotune"};
        for (std::size_t i = 0; i < word_count; ++i) {
            if (!words[i]) throw misuse("one of the words is a null pointer");
            all.push_back(words[i]);
        }
        CommandOutput taken{output, context};
        const int code = run(all, taken);
        if (const int status = taken.output().status(); status != AUTOTUNE_OK) return status;
        if (code == AUTOTUNE_OK) return code;
        return failed(code,
                      taken.last_error().empty() ? "the command failed; its output says why" : taken.last_error());
    });
}

uint32_t autotune_abi_version(void) { return AUTOTUNE_ABI_VERSION; }
const char* autotune_version(void) { return autotune::version().data(); }
