#include "tools/request.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <limits>

#include "autotune/error.h"
#include "tools/completion.h"
#include "tools/db.h"
#include "tools/help.h"
#include "tools/manual.h"
#include "tools/subcommands.h"
#include "tools/version.h"
#include "tuner/model/builtin_ops.h"
#include "tuner/model/suggest.h"

namespace autotune {
namespace {

std::string general_help() {
    std::string text =
        "autotune: finds, checks and stores the fastest config of a CUDA kernel\n\n"
        "  autotune SUB [OP [PROBLEM]] [flags]\n"
        "  autotune --op OP [--problem PROBLEM] [flags]      the same as tune\n\n";
    for (const Subcommand& row : subcommands()) text += fmt::format("  {:<12}{}\n", row.name, row.about);
    text += "\n  autotune SUB --help    the flags of one\n  autotune --version\n\nautotune help TOPIC:\n";
    for (const HelpPage& page : help_pages()) text += fmt::format("  {:<13}{}\n", page.topic, page.about());
    text += "\nExamples:\n";
    text +=
        "  autotune --op softmax --problem rows=4096,cols=4096,dtype=f32 --budget 30s\n  autotune query softmax --as "
        "cpp\n\n";
    return text + std::string{exit_codes_text()};
}

/// What a parse collects before it is read further.
struct Texts {
    std::vector<std::string> words, problems;
    std::string budget, shard, effort = "normal", prior = "records", progress = "auto", colour = "auto";
    bool quiet = false;
    int verbose = 0;
    std::string op;
    std::string seeds, evaluations;
    std::string seed, workers, trial_limit, compile_limit, run, trial;  // numbers: CLI11 would take -1 for 2^64 - 1
};

// The groups of help, in its order; what is of one subcommand alone comes before them.
constexpr const char* of_problem = "What";
constexpr const char* of_place = "Where";
constexpr const char* of_search = "The search";
constexpr const char* of_trials = "Compiling and running";
constexpr const char* of_output = "Output";

void add_output(CLI::App& app, Request& request, Texts& texts) {
    app.add_flag("--json", request.console.json, "JSON lines on stdout")->group(of_output);
    app.add_option("--progress", texts.progress, "auto, line, plain or none")->type_name("WORD")->group(of_output);
    app.add_option("--color", texts.colour, "auto, always or never")->type_name("WORD")->group(of_output);
    app.add_flag("-q,--quiet", texts.quiet, "warnings and errors only")->group(of_output);
    app.add_flag("-v,--verbose", texts.verbose, "a line a trial; twice: logs too")->group(of_output);
    app.set_help_flag();  // else it comes first, and its group too
    app.set_help_flag("-h,--help", "this text")->group(of_output);
}

void add_op(CLI::App& app, Request& request, Texts& texts) {
    app.add_option("--op", texts.op, "the op")->type_name("OP")->group(of_problem);
    app.add_option("--ops", request.ops, "a folder with ops of your own; its C++ references are compiled and run")
        ->allow_extra_args(false)
        ->type_name("DIR")
        ->group(of_problem);
    app.add_option("--chain", request.chains, "an op made of a chain such as 'relu(x + bias) * scale'")
        ->allow_extra_args(false)
        ->type_name("CHAIN")
        ->group(of_problem);
}

void add_problem(CLI::App& app, Request& request, Texts& texts) {
    app.add_option("--problem", texts.problems, "NAME=VALUE,...; may be given several times")
        ->allow_extra_args(false)
        ->type_name("PROBLEM")
        ->group(of_problem);
    app.add_option("--problems", request.problems_file, "a file with a problem a line")
        ->type_name("FILE")
        ->group(of_problem);
}

void add_misses(CLI::App& app, Request& request, Texts& texts) {
    app.add_flag("--from-misses", request.from_misses,
                 "the problems that applications ran untuned on this GPU: autotune help dispatcher")
        ->group(of_problem);
    app.add_option("--shard", texts.shard, "I/N: of the problems, those that the I-th of N machines tunes")
        ->type_name("I/N")
        ->group(of_problem);
}

std::string strategy_names() {
    std::string names;
    for (const StrategyEntry& row : strategies()) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
    return names;
}

void add_replay(CLI::App& app, Request& request, Texts& texts) {
    app.add_option("--strategy", request.strategy, strategy_names())->type_name("NAME")->group(of_search);
    app.add_option("--seeds", texts.seeds, "searches, each with a seed of its own; default: 10")
        ->type_name("N")
        ->group(of_search);
    app.add_option("--seed", texts.seed, "of the first search")->type_name("N")->group(of_search);
    app.add_option("--evaluations", texts.evaluations, "configs that work, of each search; default: 200")
        ->type_name("N")
        ->group(of_search);
    app.add_option("--with", request.with, "the same kernel's record of another device, to learn from")
        ->allow_extra_args(false)
        ->type_name("FILE")
        ->group(of_search);
    app.add_option("--workers", texts.workers, "searches at once; default: one a core")
        ->type_name("N")
        ->group(of_search);
}

void add_search(CLI::App& app, unsigned flags, Request& request, Texts& texts) {
    if (flags & takes_budget)
        app.add_option("--budget", texts.budget, "a problem's time or trials, or both: 60s, 200, 60s,200")
            ->type_name("BUDGET")
            ->group(of_search);
    if (flags & takes_search) {
        app.add_option("--strategy", request.strategy, strategy_names())->type_name("NAME")->group(of_search);
        app.add_flag("--fresh", request.fresh, "try again what earlier runs found out")->group(of_search);
    }
    if (flags & takes_prior)
        app.add_option("--prior", texts.prior,
                       "what is tried first: records of near problems and other GPUs; model, also what the emulator "
                       "predicts to be fastest; none")
            ->type_name("WORD")
            ->group(of_search);
}

void add_trials(CLI::App& app, unsigned flags, Texts& texts) {
    if (flags & takes_trials) {
        app.add_option("--effort", texts.effort, "how much is measured: quick, normal or full")
            ->type_name("WORD")
            ->group(of_trials);
        app.add_option("--seed", texts.seed, flags & takes_search ? "of the search and the inputs" : "of the inputs")
            ->type_name("N")
            ->group(of_trials);
        app.add_option("--trial-limit", texts.trial_limit, "seconds that a candidate may run; default: 10")
            ->type_name("SECONDS")
            ->group(of_trials);
    }
    if (flags & takes_compiler) {
        app.add_option("--compile-limit", texts.compile_limit, "seconds that a compile may take; default: 30")
            ->type_name("SECONDS")
            ->group(of_trials);
        app.add_option("--workers", texts.workers, "compile workers; default: one a core")
            ->type_name("N")
            ->group(of_trials);
    }
}

/// Those of one subcommand alone.
void add_own(CLI::App& app, unsigned flags, Request& request, Texts& texts) {
    if (flags & takes_config)
        app.add_option("--config", request.config, "one config: 'VARIANT NAME=VALUE ...'")->type_name("CONFIG");
    if (flags & takes_against) {
        app.add_option("--against", request.against, "what to compare with: a config, a record's id or a database")
            ->type_name("CONFIG");
        app.add_flag("--counters", request.counters, "what each config does, as an emulator counts it");
        app.add_option("--fail-on", request.fail_on, "slower: exit code 4 when what is compared is slower")
            ->type_name("WORD");
    }
    if (flags & takes_query) {
        app.add_option("--as", request.as,
                       "cpp, toml, json or cubin: one record, ready to use; t4 or kernel-tuner: the trials behind it, "
                       "for other tuners")
            ->type_name("FORM");
        app.add_option("--where", request.where, "an expression over the problem, such as 'cols >= 4096'")
            ->type_name("EXPRESSION");
        app.add_flag("--csv", request.csv, "comma-separated values");
        app.add_option("-o,--output", request.output, "the file to write; default: stdout")->type_name("FILE");
    }
    if (flags & takes_t1) {
        app.add_option("--t1", request.t1, "the space of a T1 file of another tuner, instead of an op's")
            ->type_name("FILE");
        app.add_option("--measured", request.measured, "results of another tuner in it: T4 or a Kernel Tuner cache")
            ->type_name("FILE");
        app.add_option("-o,--output", request.output, "a file for both, as a recorded space; needs --measured")
            ->type_name("FILE");
    }
    if (flags & takes_trial) {
        app.add_option("--run", texts.run, "a run's number; default: the last")->type_name("N");
        app.add_option("--trial", texts.trial, "a trial's number")->type_name("N");
    }
    if (flags & takes_show) app.add_flag("--show", request.show, "the op's files too");
    if (flags & takes_imported) app.add_flag("--imported", request.imported, "only records of other machines");
}

void add_flags(CLI::App& app, unsigned flags, const DbVerb* verb, Request& request, Texts& texts) {
    add_own(app, flags, request, texts);
    if (verb) request.db_run = verb->declare ? verb->declare(app) : verb->run;
    if (flags & takes_op) add_op(app, request, texts);
    if (flags & takes_problem) add_problem(app, request, texts);
    if (flags & takes_misses) add_misses(app, request, texts);
    if (flags & takes_gpu)
        app.add_option("--gpu", request.gpu, "an ordinal, all, a capability such as sm_86, or emulated:a100")
            ->type_name("GPU")
            ->group(of_place);
    if (flags & takes_store)
        app.add_option("--db", request.db, "the database; none: keep nothing")->type_name("FILE")->group(of_place);
    if (flags & takes_replay) add_replay(app, request, texts);
    add_search(app, flags, request, texts);
    add_trials(app, flags, texts);
    add_output(app, request, texts);
}

/// Those that stand without a flag, as usage shows them.
std::string_view words_of(unsigned flags) {
    return flags & takes_problem  ? " [OP [PROBLEM]]"
           : flags & takes_op     ? " [OP]"
           : flags & takes_folder ? " DIR"
           : flags & takes_replay ? " FILE"
           : flags & takes_shell  ? " SHELL"
                                  : "";
}

/// Words that stand without a flag: OP and PROBLEM, or the folder of `new`.
void read_words(const Subcommand& sub, Texts& texts, Request& request) {
    std::vector<std::string> words;
    for (const std::string& word : texts.words) {
        if (!word.starts_with('-')) {
            words.push_back(word);
            continue;
        }
        throw usage(fmt::format("there is no flag '{}' for {}", word, sub.name),
                    fmt::format("autotune {} --help", sub.name));
    }
    std::size_t next = 0;
    if ((sub.flags & takes_folder) && next < words.size()) request.folder = words[next++];
    if ((sub.flags & takes_replay) && next < words.size()) request.file = words[next++];
    if ((sub.flags & takes_shell) && next < words.size()) request.shell = words[next++];
    // A word with '=' is a problem's: the only op of --ops or --chain needs no name.
    const bool is_problem =
        (sub.flags & takes_problem) && next < words.size() && words[next].find('=') != std::string::npos;
    if ((sub.flags & takes_op) && texts.op.empty() && next < words.size() && !is_problem) texts.op = words[next++];
    while ((sub.flags & takes_problem) && next < words.size() && words[next].find('=') != std::string::npos)
        texts.problems.push_back(words[next++]);
    if (next < words.size())
        throw usage(fmt::format("'{}' is one word too many for {}", words[next], sub.name),
                    fmt::format("autotune {} --help", sub.name));
}

/// An empty value, mostly of a shell variable that is not set, is not the same as no flag.
void refuse_empty_values(const CLI::App& app, const Subcommand& sub) {
    for (const CLI::Option* option : app.get_options())
        for (const std::string& value : option->results())
            if (option->get_expected_max() > 0 && value.empty())
                throw usage(fmt::format("{} takes a value, and an empty one is given", option->get_name()),
                            fmt::format("autotune {} --help", sub.name));
}

/// Of the forms that an answer can have, one.
void refuse_two_forms(const Request& request) {
    std::vector<std::string_view> forms;
    if (request.console.json) forms.push_back("--json");
    if (request.csv) forms.push_back("--csv");
    if (!request.as.empty()) forms.push_back("--as");
    if (forms.size() > 1)
        throw usage(fmt::format("{} and {} are two forms of one answer", forms[0], forms[1]), "give one of them");
}

template <class Choice>
Choice choice_of(std::string_view flag, const std::string& text,
                 std::initializer_list<std::pair<std::string_view, Choice>> choices) {
    std::vector<std::string> names;
    for (const auto& [name, choice] : choices) {
        if (text == name) return choice;
        names.emplace_back(name);
    }
    throw usage(fmt::format("{} is {}, not '{}'", flag, fmt::join(names, ", "), text));
}

/// `10`, `0.5` or `10s`.
double seconds_of(std::string_view flag, std::string_view text) {
    constexpr double most = 86400;
    double number = 0;
    const char* end = text.data() + text.size() - (text.ends_with('s') ? 1 : 0);
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc{} && rest == end && number > 0 && number <= most) return number;
    throw usage(fmt::format("{} takes seconds, more than 0 and at most {}, not '{}'", flag, most, text));
}

void read_numbers(const Texts& texts, Request& request) {
    constexpr std::uint64_t any = std::numeric_limits<std::int64_t>::max();  // what a database can hold
    constexpr std::uint64_t most_workers = 1024, most_searches = 10'000;
    if (!texts.seed.empty()) request.seed = whole_of("--seed", texts.seed, 0, any);
    if (!texts.seeds.empty()) request.seeds = whole_of("--seeds", texts.seeds, 1, most_searches);
    if (!texts.evaluations.empty()) request.evaluations = whole_of("--evaluations", texts.evaluations, 1, any);
    if (!texts.workers.empty()) request.workers = whole_of("--workers", texts.workers, 0, most_workers);
    if (!texts.run.empty()) request.run = whole_of("--run", texts.run, 1, any);
    if (!texts.trial.empty()) request.trial = whole_of("--trial", texts.trial, 1, any);
    if (!texts.trial_limit.empty()) request.trial_limit_s = seconds_of("--trial-limit", texts.trial_limit);
    if (!texts.compile_limit.empty()) request.compile_limit_s = seconds_of("--compile-limit", texts.compile_limit);
}

void read_console(const Texts& texts, ConsoleOptions& console) {
    console.progress = choice_of<ProgressMode>("--progress", texts.progress,
                                               {{"auto", ProgressMode::automatic},
                                                {"line", ProgressMode::line},
                                                {"plain", ProgressMode::plain},
                                                {"none", ProgressMode::none}});
    console.colour = choice_of<std::optional<bool>>("--color", texts.colour,
                                                    {{"auto", std::nullopt}, {"always", true}, {"never", false}});
    if (texts.quiet)
        console.verbosity = Verbosity::quiet;
    else if (texts.verbose == 1)
        console.verbosity = Verbosity::trials;
    else if (texts.verbose > 1)
        console.verbosity = Verbosity::logs;
}

/// The flag that a user most likely meant, among those of this subcommand.
Error unknown_flag(const CLI::App& app, const Subcommand& sub, const std::string& typed) {
    const std::string name = typed.substr(0, typed.find('='));
    std::vector<std::string> flags;
    for (const CLI::Option* option : app.get_options())
        for (const std::string& each : option->get_lnames()) flags.push_back("--" + each);
    const std::string guess = did_you_mean(name, flags);
    const std::string where = guess.empty() && sub.name != "tune" ? fmt::format(" for {}", sub.name) : std::string{};
    return usage(fmt::format("there is no flag '{}'{}{}", name, where, guess),
                 guess.empty() ? fmt::format("autotune {} --help", sub.name) : "");
}

/// CLI11 puts two between groups.
std::string with_single_blank_lines(std::string text) {
    for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
    return text;
}

Parsed parse_subcommand(const Subcommand& sub, std::vector<std::string> arguments, const DbVerb* verb = nullptr) {
    Request request;
    Texts texts;
    request.subcommand = verb ? "db" : sub.name;
    CLI::App app{std::string{sub.about}};
    app.name(fmt::format("autotune {}{}", sub.name, words_of(sub.flags)));
    app.allow_extras();
    app.footer(fmt::format("Example: {}\n{}", sub.example, exit_codes_text()));
    add_flags(app, sub.flags, verb, request, texts);
    std::ranges::reverse(arguments);  // CLI11 takes a vector from its end
    try {
        app.parse(arguments);
    } catch (const CLI::CallForHelp&) {
        return {.request = std::nullopt, .text = with_single_blank_lines(app.help())};
    } catch (const CLI::ArgumentMismatch& e) {
        const std::string what = e.what(), flag = what.substr(0, what.find(':'));
        const bool none = what.find("missing") != std::string::npos;
        throw usage(fmt::format("{} {}", flag, none ? "takes a value, and none is given" : "is given more than once"),
                    fmt::format("autotune {} --help", sub.name));
    } catch (const CLI::ParseError& e) {
        throw usage(fmt::format("{} for '{}'", e.what(), sub.name), fmt::format("autotune {} --help", sub.name));
    }
    for (const std::string& word : app.remaining()) {
        if (word.size() > 1 && word.starts_with('-')) throw unknown_flag(app, sub, word);
        texts.words.push_back(word);
    }
    refuse_empty_values(app, sub);
    read_words(sub, texts, request);
    request.op = texts.op;
    for (const std::string& problem : texts.problems) request.problems.push_back(problem_from_text(problem));
    if (!texts.shard.empty()) request.shard = Shard::parse(texts.shard);
    if (!texts.budget.empty()) request.budget = budget_from_text(texts.budget);
    request.effort = choice_of<Effort>("--effort", texts.effort,
                                       {{"quick", Effort::quick}, {"normal", Effort::normal}, {"full", Effort::full}});
    request.prior = choice_of<Prior>("--prior", texts.prior,
                                     {{"none", Prior::none}, {"records", Prior::records}, {"model", Prior::model}});
    read_numbers(texts, request);
    if (request.from_misses && (!request.problems.empty() || !request.problems_file.empty()))
        throw usage("--from-misses takes its problems from applications, and --problem names another",
                    "autotune --from-misses");
    if (request.from_misses && request.db == "none")
        throw usage("--from-misses reads what lies beside the database, and --db none has none",
                    "autotune --from-misses");
    if (!request.fail_on.empty() && request.fail_on != "slower")
        throw usage(fmt::format("--fail-on is slower, not '{}'", request.fail_on));
    read_console(texts, request.console);
    refuse_two_forms(request);
    return {.request = request, .text = {}};
}

std::string db_help() {
    std::string text = fmt::format("autotune db: {}\n\n", subcommand_named("db")->about);
    for (const DbVerb& verb : db_verbs()) text += fmt::format("  {:<15}{}\n", verb.name, verb.about);
    text += "\n  autotune db VERB --help    the flags of one\n\nExamples:\n";
    for (const DbVerb& verb : db_verbs()) text += fmt::format("  {}\n", verb.example);
    return text + '\n' + std::string{exit_codes_text()};
}

/// words: what follows `db`.
Parsed parse_db(std::vector<std::string> words) {
    if (words.empty() || words[0] == "-h" || words[0] == "--help") return {.request = std::nullopt, .text = db_help()};
    const DbVerb* verb = db_verb_named(words[0]);
    if (!verb) {
        std::vector<std::string> names;
        for (const DbVerb& row : db_verbs()) names.emplace_back(row.name);
        throw usage(words[0].starts_with('-')
                        ? fmt::format("a verb comes before '{}'", words[0])
                        : fmt::format("there is no verb '{}' for db{}", words[0], did_you_mean(words[0], names)),
                    "autotune db --help");
    }
    words.erase(words.begin());
    const std::string name = fmt::format("db {}", verb->name);
    return parse_subcommand({name, verb->about, verb->example, verb->flags, run_db}, std::move(words), verb);
}

/// `autotune help [TOPIC]`: a page, or the flags of a subcommand.
std::string help_text(const std::vector<std::string>& words) {
    if (words.size() < 2) return general_help();
    // For the build, which installs the pages.
    if (words[1] == "--man") return manual_page(fmt::format("{}", fmt::join(words.begin() + 2, words.end(), " ")));
    if (words[1] == "--man-pages") return manual_pages();
    if (words[1] == "db" && words.size() < 4)
        return parse_db(words.size() < 3 ? std::vector<std::string>{} : std::vector{words[2], std::string{"--help"}})
            .text;
    if (words.size() > 2) throw usage(fmt::format("'{}' is one word too many for help", words[2]), "autotune help");
    if (const Subcommand* sub = subcommand_named(words[1])) return parse_subcommand(*sub, {"--help"}).text;
    std::vector<std::string> names;
    for (const Subcommand& row : subcommands()) names.emplace_back(row.name);
    return help_on(words[1], names);
}

}  // namespace

Error usage(const std::string& message, const std::string& help) { return {Error::Kind::usage, message, help}; }

std::uint64_t whole_of(std::string_view flag, const std::string& text, std::uint64_t least, std::uint64_t most) {
    std::uint64_t number = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc{} && rest == end && number >= least && number <= most) return number;
    throw usage(fmt::format("{} takes a whole number from {} to {}, not '{}'", flag, least, most, text));
}

Expression where_from_text(const std::string& text) {
    try {
        return Expression::parse(text);
    } catch (const ParseError& e) {
        throw usage(fmt::format("--where '{}' is no expression: {} at column {}", text, e.what(), e.offset() + 1));
    }
}

ProblemText problem_from_text(std::string_view text) {
    ProblemText problem;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string_view part = text.substr(begin, end - begin);
        const std::size_t equals = part.find('=');
        if (equals == std::string_view::npos || equals == 0 || equals + 1 == part.size())
            throw usage(fmt::format("'{}' in the problem '{}' is no NAME=VALUE", part, text),
                        "write it as rows=4096,cols=4096,dtype=f32");
        problem.emplace_back(part.substr(0, equals), value_from_text(part.substr(equals + 1)));
        begin = end + 1;
    }
    return problem;
}

Budget budget_from_text(std::string_view text) {
    Budget budget;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string part{text.substr(begin, end - begin)};
        double number = 0;
        const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), number);
        const std::string unit{rest, part.data() + part.size()};
        const double scale = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
        const bool whole = unit.empty() && number == std::floor(number);
        if (error != std::errc{} || !(number > 0) || number > 1e9 || (scale == 0 && !whole))
            throw usage(fmt::format("the budget '{}' is neither a time nor a count of trials", text),
                        "--budget 60s, --budget 200, or --budget 60s,200");
        if (scale > 0 ? budget.seconds.has_value() : budget.trials.has_value())
            throw usage(fmt::format("the budget '{}' has two {}", text, scale > 0 ? "times" : "counts of trials"),
                        "--budget 60s, --budget 200, or --budget 60s,200");
        if (scale > 0)
            budget.seconds = number * scale;
        else
            budget.trials = static_cast<std::size_t>(number);
        begin = end + 1;
    }
    return budget;
}

std::vector<CommandRow> commands() {
    std::vector<CommandRow> rows;
    const auto add = [&](std::string name, std::string_view about, std::string_view example, unsigned takes,
                         const DbVerb* verb) {
        Request request;
        Texts texts;
        CLI::App app;
        add_flags(app, takes, verb, request, texts);
        CommandRow row{.name = std::move(name), .about = about, .example = example, .takes = takes, .flags = {}};
        for (const CLI::Option* option : app.get_options()) {
            FlagRow flag{
                .names = {}, .takes_value = option->get_expected_max() > 0, .about = option->get_description()};
            for (const std::string& each : option->get_snames()) flag.names.push_back('-' + each);
            for (const std::string& each : option->get_lnames()) flag.names.push_back("--" + each);
            if (!flag.names.empty()) row.flags.push_back(std::move(flag));  // else a word without a flag
        }
        rows.push_back(std::move(row));
    };
    for (const Subcommand& sub : subcommands()) {
        add(std::string{sub.name}, sub.about, sub.example, sub.flags, nullptr);
        if (sub.run == run_db)
            for (const DbVerb& verb : db_verbs())
                add(fmt::format("db {}", verb.name), verb.about, verb.example, verb.flags, &verb);
    }
    return rows;
}

Parsed parse_request(int count, const char* const* arguments) {
    std::vector<std::string> words(arguments + 1, arguments + count);
    if (!words.empty() && words[0] == "help") return {.request = std::nullopt, .text = help_text(words)};
    if (words.empty() || words[0] == "-h" || words[0] == "--help")
        return {.request = std::nullopt, .text = general_help()};
    if (words[0] == "__complete") return {.request = std::nullopt, .text = completions(std::span{words}.subspan(1))};
    if (words[0] == "--version") return {.request = std::nullopt, .text = version_text()};
    if (words[0].starts_with('-')) return parse_subcommand(*subcommand_named("tune"), words);
    const Subcommand* sub = subcommand_named(words[0]);
    if (!sub) {
        std::vector<std::string> names;
        for (const Subcommand& row : subcommands()) names.emplace_back(row.name);
        names.emplace_back("help");
        if (std::ranges::find(builtin_ops(), words[0], &Op::name) != builtin_ops().end())
            throw usage(fmt::format("'{}' is an op, and a subcommand comes first", words[0]),
                        fmt::format("autotune tune {}", words[0]));
        throw usage(fmt::format("there is no subcommand '{}'{}", words[0], did_you_mean(words[0], names)),
                    "autotune help");
    }
    words.erase(words.begin());
    return sub->run == run_db ? parse_db(std::move(words)) : parse_subcommand(*sub, words);
}

}  // namespace autotune
