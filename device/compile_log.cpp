#include "device/compile_log.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace autotune {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// The number that ends right before `keyword`, or `otherwise`.
int number_before(std::string_view line, std::string_view keyword, int otherwise) {
    const std::size_t at = line.find(keyword);
    if (at == std::string_view::npos) return otherwise;
    std::size_t start = at;
    while (start > 0 && is_digit(line[start - 1])) --start;
    int value = otherwise;
    std::from_chars(line.data() + start, line.data() + at, value);
    return value;
}

/// What stands in the first pair of quotes after `keyword`.
std::string_view quoted_after(std::string_view line, std::string_view keyword) {
    const std::size_t at = line.find(keyword);
    if (at == std::string_view::npos) return {};
    const std::size_t open = line.find('\'', at);
    if (open == std::string_view::npos) return {};
    const std::size_t close = line.find('\'', open + 1);
    return close == std::string_view::npos ? std::string_view{} : line.substr(open + 1, close - open - 1);
}

/// "C7511" where the line holds "(C7511)".
std::string_view remark_code(std::string_view line) {
    for (std::size_t at = line.find("(C"); at != std::string_view::npos; at = line.find("(C", at + 1)) {
        std::size_t end = at + 2;
        while (end < line.size() && is_digit(line[end])) ++end;
        if (end > at + 2 && end < line.size() && line[end] == ')') return line.substr(at + 1, end - at - 1);
    }
    return {};
}

CompiledFunction& function_named(CompileLog& log, std::string_view symbol) {
    const auto found = std::find_if(log.functions.begin(), log.functions.end(),
                                    [&](const CompiledFunction& function) { return function.symbol == symbol; });
    if (found != log.functions.end()) return *found;
    log.functions.push_back({.symbol = std::string{symbol}});
    return log.functions.back();
}

/// Names rather than references: the vector grows while lines are read.
struct Context {
    std::string entry;  ///< the kernel that "Used ... registers" speaks of
    std::string frame;  ///< the function that "bytes stack frame" speaks of
};

void read_line(std::string_view line, CompileLog& log, Context& context) {
    if (const std::string_view code = remark_code(line); !code.empty())
        log.remarks.push_back({std::string{code}, std::string{line}});
    if (const std::string_view entry = quoted_after(line, "Compiling entry function"); !entry.empty()) {
        context = {std::string{entry}, std::string{entry}};
        function_named(log, entry).entry = true;
        return;
    }
    constexpr std::string_view properties = "Function properties for ";
    if (const std::size_t at = line.find(properties); at != std::string_view::npos) {
        context.frame = line.substr(at + properties.size());
        function_named(log, context.frame);
        return;
    }
    if (line.find(" bytes stack frame") != std::string_view::npos && !context.frame.empty()) {
        CompiledFunction& function = function_named(log, context.frame);
        function.stack_bytes = number_before(line, " bytes stack frame", 0);
        function.spill_store_bytes = number_before(line, " bytes spill stores", 0);
        function.spill_load_bytes = number_before(line, " bytes spill loads", 0);
        return;
    }
    if (line.find(" registers") != std::string_view::npos && line.find("Used ") != std::string_view::npos &&
        !context.entry.empty()) {
        CompiledFunction& function = function_named(log, context.entry);
        function.registers = number_before(line, " registers", 0);
        function.barriers = number_before(line, " barriers", 0);
        function.shared_bytes = number_before(line, " bytes smem", 0);
    }
}

}  // namespace

CompileLog read_compile_log(std::string_view log) {
    CompileLog result;
    Context context;
    while (!log.empty()) {
        const std::size_t end = std::min(log.find('\n'), log.size());
        std::string_view line = log.substr(0, end);
        if (line.ends_with('\r')) line.remove_suffix(1);
        read_line(line, result, context);
        log.remove_prefix(std::min(end + 1, log.size()));
    }
    return result;
}

bool serialised(const CompileRemark& remark) noexcept {
    constexpr std::array<std::string_view, 4> codes{"C7508", "C7511", "C7517", "C7519"};
    return std::find(codes.begin(), codes.end(), remark.code) != codes.end();
}

}  // namespace autotune
