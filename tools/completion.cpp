#include "tools/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "device/emulator/parts.h"
#include "tools/help.h"
#include "tools/request.h"
#include "tools/subcommands.h"
#include "tuner/loader/user_ops.h"
#include "tuner/strategy.h"

namespace autotune {

// Made by the build from the files of tools/completion.
namespace completion_scripts {
extern const std::string_view bash, zsh, fish;
}

namespace {

constexpr std::string_view file_wanted = ":files\n";

struct Shell {
    std::string_view name, script;
};
std::span<const Shell> shells() {
    static const std::array table{Shell{"bash", completion_scripts::bash}, Shell{"zsh", completion_scripts::zsh},
                                  Shell{"fish", completion_scripts::fish}};
    return table;
}

/// Candidates that go on from what is typed.
class Candidates {
public:
    explicit Candidates(std::string_view typed) : typed_{typed} {}
    void add(std::string_view candidate, std::string_view about = {}) {
        if (!candidate.starts_with(typed_)) return;
        text_ += candidate;
        if (!about.empty()) text_ += fmt::format("\t{}", about.substr(0, about.find('\n')));
        text_ += '\n';
    }
    std::string text() && { return std::move(text_); }

private:
    std::string_view typed_;
    std::string text_;
};

/// The words of flags whose values are few, beside those that come from a table.
struct FlagValues {
    std::string_view flag;
    std::vector<std::string_view> values;
};
const std::vector<FlagValues>& flag_values() {
    static const std::vector<FlagValues> table{{"--progress", {"auto", "line", "plain", "none"}},
                                               {"--color", {"auto", "always", "never"}},
                                               {"--effort", {"quick", "normal", "full"}},
                                               {"--prior", {"none", "records", "model"}},
                                               {"--as", {"cpp", "toml", "json", "cubin", "t4", "kernel-tuner"}},
                                               {"--fail-on", {"slower"}}};
    return table;
}

constexpr std::array<std::string_view, 8> flags_of_paths{"--ops", "--db",     "--problems", "--output",
                                                         "-o",    "--bundle", "--against",  "--into"};

/// A command line as far as it is typed.
struct Typed {
    std::vector<std::string> words;  ///< those without a flag behind the command
    std::string flag;                ///< whose value the last word is
    std::string op;                  ///< of --op
    std::vector<std::string> op_folders;
};

const FlagRow* flag_named(const CommandRow& command, std::string_view name) {
    for (const FlagRow& flag : command.flags)
        if (std::ranges::find(flag.names, name) != flag.names.end()) return &flag;
    return nullptr;
}

Typed read_typed(const CommandRow& command, std::span<const std::string> words) {
    Typed typed;
    const auto value_of = [&](std::string_view flag, const std::string& value) {
        if (flag == "--op") typed.op = value;
        if (flag == "--ops") typed.op_folders.push_back(value);
    };
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        if (!words[i].starts_with('-')) {
            typed.words.push_back(words[i]);
            continue;
        }
        const std::size_t equals = words[i].find('=');
        const FlagRow* flag = flag_named(command, words[i].substr(0, equals));
        if (!flag || !flag->takes_value) continue;
        if (equals != std::string::npos)
            value_of(flag->names.back(), words[i].substr(equals + 1));
        else if (i + 2 < words.size())
            value_of(flag->names.back(), words[++i]);
        else
            typed.flag = flag->names.back();
    }
    return typed;
}

OpSet ops_of(const Typed& typed) {
    OpSet ops;
    for (const std::string& folder : typed.op_folders) try {
            add_op_folder(ops, folder);
        } catch (const std::exception&) {  // said when the command runs
        }
    return ops;
}

/// `rows=4096,dty`: the fields that are not given yet; behind `dtype=` its choices.
void add_problem(const Op& op, std::string_view typed, Candidates& out) {
    const std::size_t comma = typed.rfind(',');
    const std::string_view before = comma == std::string_view::npos ? "" : typed.substr(0, comma + 1);
    const std::string_view part = typed.substr(before.size());
    const std::size_t equals = part.find('=');
    if (equals != std::string_view::npos) {
        const Field* field = op.field(part.substr(0, equals));
        if (!field) return;
        const std::string start = fmt::format("{}{}=", before, field->name);
        for (const Value& choice : field->choices) out.add(start + to_text(choice), field->about);
        if (field->kind == Field::Kind::flag)
            for (const char* choice : {"true", "false"}) out.add(start + choice, field->about);
        return;
    }
    std::set<std::string, std::less<>> given;
    for (std::size_t begin = 0; begin < before.size(); begin = before.find(',', begin) + 1)
        given.emplace(before.substr(begin, before.find_first_of("=,", begin) - begin));
    for (const Field& field : op.fields)
        if (!given.contains(field.name)) out.add(fmt::format("{}{}=", before, field.name), field.about);
}

void add_ops(const OpSet& ops, Candidates& out) {
    for (const Op* op : ops.all()) out.add(op->name, op->summary);
}

std::string values_of(const std::string& flag, const Typed& typed, std::string_view last) {
    if (std::ranges::find(flags_of_paths, flag) != flags_of_paths.end()) return std::string{file_wanted};
    Candidates out{last};
    for (const FlagValues& row : flag_values())
        if (row.flag == flag)
            for (const std::string_view value : row.values) out.add(value);
    if (flag == "--op") add_ops(ops_of(typed), out);
    if (flag == "--strategy")
        for (const StrategyEntry& row : strategies()) out.add(row.name, row.about);
    if (flag == "--gpu") {
        out.add("all", "every GPU here");
        for (const emulator::Part& part : emulator::parts) out.add(fmt::format("emulated:{}", part.key), part.name);
    }
    if (flag == "--problem") {
        const std::string name = !typed.op.empty() ? typed.op : typed.words.empty() ? "" : typed.words.front();
        const OpSet ops = ops_of(typed);
        if (const Op* op = ops.find_or_null(name)) add_problem(*op, last, out);
    }
    return std::move(out).text();
}

std::string of_command(const CommandRow& command, std::span<const std::string> words) {
    const std::string& last = words.back();
    const Typed typed = read_typed(command, words);
    if (!typed.flag.empty()) return values_of(typed.flag, typed, last);
    Candidates out{last};
    if (last.starts_with('-')) {
        for (const FlagRow& flag : command.flags) out.add(flag.names.back(), flag.about);
        return std::move(out).text();
    }
    if (command.takes & (takes_folder | takes_replay)) return std::string{file_wanted};
    if (command.takes & takes_shell) {
        for (const Shell& shell : shells()) out.add(shell.name);
    } else if (command.takes & takes_op) {
        const OpSet ops = ops_of(typed);
        const std::size_t of_op = typed.op.empty() ? 1 : 0;
        if (typed.words.size() < of_op) add_ops(ops, out);
        const std::string name = of_op && !typed.words.empty() ? typed.words.front() : typed.op;
        if (const Op* op = ops.find_or_null(name); op && typed.words.size() == of_op && (command.takes & takes_problem))
            add_problem(*op, last, out);
    }
    return std::move(out).text();
}

std::string topics(std::string_view last) {
    Candidates out{last};
    for (const CommandRow& row : commands())
        if (row.name.find(' ') == std::string::npos) out.add(row.name, row.about);
    for (const HelpPage& page : help_pages()) out.add(page.topic, page.about());
    return std::move(out).text();
}

}  // namespace

std::string_view completion_script(std::string_view shell) {
    std::vector<std::string> names;
    for (const Shell& row : shells()) {
        if (row.name == shell) return row.script;
        names.emplace_back(row.name);
    }
    throw usage(shell.empty()
                    ? std::string{"completion takes a shell, and none is given"}
                    : fmt::format("'{}' is no shell that completion knows; it knows {}", shell, fmt::join(names, ", ")),
                "autotune completion bash");
}

std::string completions(std::span<const std::string> words) {
    if (words.empty()) return {};
    const std::vector<CommandRow> all = commands();
    const auto named = [&](std::string_view name) { return std::ranges::find(all, name, &CommandRow::name); };
    const std::string& first = words.front();
    if (first.starts_with('-')) return of_command(*named("tune"), words);
    if (words.size() == 1) {
        Candidates out{first};
        for (const CommandRow& row : all)
            if (row.name.find(' ') == std::string::npos) out.add(row.name, row.about);
        out.add("help", "a page on a topic, or the flags of a subcommand");
        return std::move(out).text();
    }
    if (first == "help") return words.size() == 2 ? topics(words.back()) : std::string{};
    const std::string verb_prefix = first + ' ';
    if (std::ranges::any_of(all, [&](const CommandRow& row) { return row.name.starts_with(verb_prefix); })) {
        if (words.size() == 2) {
            Candidates out{words.back()};
            for (const CommandRow& row : all)
                if (row.name.starts_with(verb_prefix)) out.add(row.name.substr(verb_prefix.size()), row.about);
            return std::move(out).text();
        }
        const auto verb = named(verb_prefix + words[1]);
        return verb == all.end() ? std::string{} : of_command(*verb, words.subspan(2));
    }
    const auto command = named(first);
    return command == all.end() ? std::string{} : of_command(*command, words.subspan(1));
}

int run_completion(const Request& request, Console& console) {
    console.raw(completion_script(request.shell));
    return 0;
}

}  // namespace autotune
