#include "tools/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <istream>
#include <memory>
#include <set>

#include "autotune/error.h"
#include "cache/store/location.h"
#include "cache/store/upkeep.h"
#include "device/emulator/parts.h"
#include "device/identity.h"
#include "device/nvrtc.h"
#include "device/occupancy.h"
#include "tools/bench_source.h"
#include "tools/interrupt.h"
#include "tools/named_file.h"
#include "tools/search.h"
#include "tuner/chains/chain_op.h"
#include "tuner/loader/user_ops.h"
#include "tuner/model/free_stride.h"
#include "tuner/model/suggest.h"

namespace autotune {
namespace {

constexpr std::size_t longest_line = 64 * 1024;
constexpr std::size_t most_problems = 100'000;
constexpr std::int64_t most_alignment = 1 << 20;

/// Names that stand as bare words in strides and are given at launch.
std::set<std::string> free_strides(const Op& op) {
    std::set<std::string> names;
    for (const Tensor& tensor : op.tensors)
        for (const Expression& stride : tensor.strides)
            if (const auto name = free_stride(op, stride)) names.insert(*name);
    return names;
}

/// Whether the value of a field follows from the scalar, through a [let] or not.
bool decides_a_field(const Op& op, std::string_view scalar) {
    std::set<std::string, std::less<>> follow{std::string{scalar}};
    const auto follows = [&](const Expression& expression) {
        return std::ranges::any_of(expression.names(), [&](const std::string& name) { return follow.contains(name); });
    };
    for (const auto& [name, expression] : op.lets)  // each uses only earlier ones
        if (follows(expression)) follow.insert(name);
    return std::ranges::any_of(op.fields, [&](const Field& field) { return follows(field.from); });
}

/// What is emulated where no GPU is and none was named.
constexpr const char* usual_emulated = "emulated:sm_86";

std::int64_t whole(std::string_view name, const Value& value) {
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
    throw usage(fmt::format("{}={} is no whole number", name, to_text(value)));
}

/// What is no power of two is refused where the tensor is known.
int alignment(std::string_view name, const Value& value) {
    const std::int64_t bytes = whole(name, value);
    if (bytes >= 1 && bytes <= most_alignment) return static_cast<int>(bytes);
    throw usage(
        fmt::format("{}={} is no alignment: it takes a power of two from 1 to {}", name, bytes, most_alignment));
}

/// Like getline, but reads no further than is allowed: /dev/zero is one line without an end.
bool next_line(std::istream& stream, std::string& line) {
    line.clear();
    for (char c = 0; line.size() <= longest_line && stream.get(c);) {
        if (c == '\n') return true;
        line += c;
    }
    return !line.empty();
}

std::vector<AskedProblem> read_problems_file(const std::string& path, const OpSet& ops, const std::string& op) {
    std::error_code ignored;
    const std::unique_ptr<std::istream> stream = open_named_file(path);
    if (!stream || std::filesystem::is_directory(path, ignored))
        throw usage(fmt::format("the problems file '{}' cannot be read", path));
    std::vector<AskedProblem> problems;
    std::string line;
    for (std::size_t number = 1; next_line(*stream, line); ++number) {
        const std::string origin = fmt::format("{}:{}", path, number);
        if (line.size() > longest_line) throw usage(fmt::format("{}: the line is longer than 64 KiB", origin));
        if (line.find('\0') != std::string::npos) throw usage(fmt::format("{}: the line holds a NUL byte", origin));
        if (number == 1 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);  // an editor's mark of UTF-8
        if (const std::size_t hash = line.find('#'); hash != std::string::npos) line.erase(hash);
        const std::size_t begin = line.find_first_not_of(" \t\r");
        if (begin == std::string::npos) continue;
        const std::string text = line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
        const std::size_t blank = text.find_first_of(" \t");
        const bool has_op = text.substr(0, blank).find('=') == std::string::npos;
        const std::string name = has_op ? text.substr(0, blank) : op;
        if (name.empty())
            throw usage(fmt::format("{}: no op is named", origin),
                        "write it as: softmax rows=4096,cols=4096, or give --op");
        try {
            const std::size_t rest = has_op && blank != std::string::npos ? text.find_first_not_of(" \t", blank)
                                     : has_op                             ? text.size()
                                                                          : 0;
            problems.push_back({.op = &ops.find(name),
                                .text = rest < text.size() ? problem_from_text(text.substr(rest)) : ProblemText{},
                                .origin = origin});
        } catch (const Error& e) {
            throw usage(fmt::format("{}: {}", origin, e.what()), e.help());
        }
        if (problems.size() > most_problems)
            throw usage(fmt::format("{} holds more than {} problems", path, most_problems));
    }
    if (problems.empty()) throw usage(fmt::format("the problems file '{}' holds no problem", path));
    return problems;
}

}  // namespace

Session::Session(const Request& request, Console& console) : request_{request}, console_{console} {
    for (const std::string& folder : request.ops)
        for (const std::string& note : add_op_folder(ops_, folder)) console.note(note);
    for (const std::string& chain : request.chains)
        for (const std::string& note : add_chain(ops_, chain)) console.note(note);
    note_fields_apart();
}

/// `rows=64 cols=64` is two problems, and mostly meant as one.
void Session::note_fields_apart() const {
    const std::vector<ProblemText>& given = request_.problems;
    if (given.size() != 2 || given[0].size() != 1 || given[1].size() != 1 || given[0][0].first == given[1][0].first)
        return;
    const auto text = [](const ProblemText& problem) {
        return fmt::format("{}={}", problem[0].first, to_text(problem[0].second));
    };
    console_.note(fmt::format("{} and {} are two problems; as one they are {},{}", text(given[0]), text(given[1]),
                              text(given[0]), text(given[1])));
}

const Op& Session::op() const {
    if (!request_.op.empty()) return ops_.find(request_.op);
    const std::vector<const Op*> own = ops_.added();
    if (own.size() == 1) return *own.front();
    throw usage(fmt::format("{} needs an op", request_.subcommand),
                fmt::format("autotune {} {}", request_.subcommand, own.empty() ? "softmax" : own.front()->name));
}

std::vector<AskedProblem> Session::problems() const {
    std::vector<AskedProblem> problems;
    if (!request_.problems_file.empty()) problems = read_problems_file(request_.problems_file, ops_, request_.op);
    for (const ProblemText& text : request_.problems) problems.push_back({.op = &op(), .text = text, .origin = {}});
    if (problems.empty()) problems.push_back({.op = &op(), .text = {}, .origin = {}});
    return problems;
}

std::vector<PresentGpu> Session::gpus() const {
    const std::vector<DeviceIdentity> present = present_devices();
    const std::string& asked = request_.gpu;
    if (asked.starts_with("emulated:")) return {emulated(asked)};
    const std::optional<int> capability = capability_from_text(asked);
    std::vector<PresentGpu> chosen;
    for (std::size_t i = 0; i < present.size(); ++i) {
        const bool wanted = asked.empty()
                                ? chosen.empty()
                                : asked == "all" || asked == std::to_string(i) || capability == present[i].limits.cc;
        if (wanted) chosen.push_back({.ordinal = static_cast<int>(i), .identity = present[i]});
    }
    if (!chosen.empty()) return chosen;
    const bool ordinal = !asked.empty() && asked.find_first_not_of("0123456789") == std::string::npos;
    if (!asked.empty() && asked != "all" && !ordinal && !(capability && capability_row(*capability)))
        throw usage(
            fmt::format("--gpu is an ordinal, all, a capability such as sm_86, or emulated:PART, not '{}'", asked),
            std::ranges::find(emulator::parts, asked, &emulator::Part::key) != emulator::parts.end()
                ? fmt::format("--gpu emulated:{} for one that is emulated", asked)
                : "autotune help emulator");
    if (capability) return {emulated("emulated:" + asked)};
    if (asked.empty()) return {emulated(usual_emulated)};
    if (present.empty())
        throw Error{Error::Kind::device, fmt::format("there is no usable GPU here, so none is '{}'", asked),
                    "without --gpu an emulated one is taken; autotune doctor says what is missing"};
    throw Error{Error::Kind::device, fmt::format("there is no gpu {}; there are {}, from 0", asked, present.size()),
                "autotune doctor"};
}

/// Said aloud: nobody shall take an emulated time for a measured one.
PresentGpu Session::emulated(const std::string& text) const {
    std::optional<DeviceIdentity> identity = emulated_device(text);
    if (!identity) {
        std::vector<std::string> parts;
        for (const emulator::Part& part : emulator::parts) parts.emplace_back(part.key);
        throw usage(
            fmt::format("there is no emulated GPU '{}'", text.substr(text.find(':') + 1)),
            fmt::format("--gpu emulated:PART, a PART being one of {}, or a capability of theirs", enumerated(parts)));
    }
    if (!emulation_said_)
        console_.warning(
            fmt::format("{} is EMULATED: kernels are compiled, run and checked on this machine's processor, "
                        "and their times are PREDICTED, not measured",
                        identity->name));
    emulation_said_ = true;
    return {.ordinal = 0, .identity = std::move(*identity), .emulated = text};
}

DeviceLimits Session::limits() const {
    const std::optional<int> capability = capability_from_text(request_.gpu);
    if (!capability) return gpus().front().identity.limits;
    for (const DeviceIdentity& device : present_devices())
        if (device.limits.cc == *capability) return device.limits;
    const std::optional<DeviceLimits> limits = limits_of_capability(*capability);
    if (!limits) throw usage(fmt::format("{} is no capability that is known here", request_.gpu), "autotune doctor");
    return *limits;
}

Store Session::open_store(Store::Mode mode) const {
    Store::Options options{
        .path = request_.db, .mode = mode, .warn = [this](const std::string& text) { console_.warning(text); }};
    if (request_.db == "none") options = {.path = {}, .mode = Store::Mode::memory, .warn = {}};
    return Store::open(options);
}

Store Session::open_present_store(Store::Mode mode) const {
    std::error_code unreadable;
    if (!request_.db.empty() && request_.db != "none" && !std::filesystem::exists(request_.db, unreadable) &&
        !unreadable) {
        Store nothing = open_store(Store::Mode::read);
        if (nothing.generation() == 0 && Upkeep{nothing}.statistics({}).spool_files == 0)
            throw usage(fmt::format("there is no database at '{}'", shown(request_.db)), "name one with --db");
    }
    return open_store(mode);
}

Environment Session::environment(const DeviceIdentity* device) const { return environment_here(device); }

Today Session::today(const std::vector<const Op*>& ops) const {
    const Environment here = environment(nullptr);
    Today today{.templates = {}, .nvrtc_major = here.nvrtc_major, .nvrtc_minor = here.nvrtc_minor};
    for (const Op* op : ops) std::ranges::move(templates_of(*op), std::back_inserter(today.templates));
    return today;
}

std::string Session::nvrtc_version() const {
    const Nvrtc* nvrtc = nvrtc_if_present();
    return nvrtc ? fmt::format("{}.{}", nvrtc->major, nvrtc->minor) : std::string{};
}

WorkerOptions Session::worker_options(const PresentGpu& gpu) const {
    WorkerOptions options = worker_options();
    options.device = gpu.emulated.empty() ? std::to_string(gpu.ordinal) : gpu.emulated;
    return options;
}

WorkerOptions Session::worker_options() const {
    WorkerOptions options;
    options.compile_workers = request_.workers;
    options.compile_limit_s = request_.compile_limit_s;
    options.trial_limit_s = request_.trial_limit_s;
    options.effort = request_.effort;
    options.seed = request_.seed;
    options.stop_requested = [] { return interrupted() != 0; };
    options.note = [&console = console_](const std::string& text) { console.note(text); };
    return options;
}

Instance Session::instance(const AskedProblem& problem, const DeviceLimits& limits) {
    const Instance instance = instance_with_scalars(problem, limits);
    for (const auto& [name, value] : instance.binding().scalars)
        if (!decides_a_field(instance.op(), name)) {
            const std::string where = problem.origin.empty() ? "" : problem.origin + ": ";
            throw usage(fmt::format("{}{}={} is part of no problem of '{}': no field follows from the scalar '{}', so "
                                    "what is stored holds for all of its values",
                                    where, name, to_text(value), instance.op().name, name),
                        "leave it out; check and bench run with the value that they are given");
        }
    return instance;
}

Instance Session::instance_with_scalars(const AskedProblem& problem, const DeviceLimits& limits) {
    try {
        const auto [fields, binding] = split_problem(*problem.op, problem.text);
        return Instance::make(*problem.op, fields, limits, binding);
    } catch (const Error& e) {
        if (problem.origin.empty()) throw;
        throw Error{e.kind(), fmt::format("{}: {}", problem.origin, e.what()), e.help()};
    }
}

BenchSource real_benches() {
    return {.gpus = [](const Session& session) { return session.gpus(); },
            .bench = [](const Session& session, const PresentGpu& gpu) -> std::unique_ptr<Bench> {
                return make_worker_bench(session.worker_options(gpu));
            }};
}

std::string problem_words(const Instance& instance, std::string_view separator) {
    const Instance plain = Instance::make(instance.op(), instance.problem().fields, instance.limits());
    std::string text;
    const auto add = [&](std::string_view name, const Value& value) {
        text += fmt::format("{}{}={}", text.empty() ? "" : separator, name, to_text(value));
    };
    for (const auto& [name, value] : instance.problem().fields) add(name, value);
    if (!std::ranges::equal(instance.tensors(), plain.tensors(), {}, &BoundTensor::strides, &BoundTensor::strides))
        for (const auto& [name, stride] : instance.binding().strides) add(name, stride);
    for (std::size_t i = 0; i < plain.tensors().size(); ++i)
        if (const BoundTensor& tensor = instance.tensors()[i];
            tensor.present && tensor.align != plain.tensors()[i].align)
            add(tensor.name + ".align", std::int64_t{tensor.align});
    return text;
}

std::pair<std::vector<std::pair<std::string, Value>>, Binding> split_problem(const Op& op, const ProblemText& text) {
    const std::set<std::string> strides = free_strides(op);
    std::vector<std::pair<std::string, Value>> fields;
    Binding binding;
    for (const auto& [name, value] : text) {
        const std::size_t dot = name.find('.');
        if (dot != std::string::npos && name.substr(dot) == ".align" && op.tensor(name.substr(0, dot)))
            binding.align.emplace_back(name.substr(0, dot), alignment(name, value));
        else if (strides.contains(name))
            binding.strides.emplace_back(name, whole(name, value));
        else if (std::ranges::find(op.scalars, name, &Scalar::name) != op.scalars.end())
            binding.scalars.emplace_back(name, value);
        else
            fields.emplace_back(name, value);
    }
    return {fields, binding};
}

Config complete_config(const Instance& instance, Config config) {
    const Op& op = instance.op();
    const std::string help = fmt::format("autotune ops {}", op.name);
    if (config.variant.empty()) config.variant = instance.default_config().variant;
    const Variant* variant = op.variant(config.variant);
    if (!variant) throw usage(fmt::format("'{}' has no variant '{}'", op.name, config.variant), help);
    const std::optional<Config> defaults = instance.defaults_of(*variant);
    Config whole{.variant = config.variant, .values = {}};
    for (const Parameter& parameter : variant->parameters) {
        const auto given = std::ranges::find(config.values, parameter.name, &std::pair<std::string, Value>::first);
        if (given != config.values.end())
            whole.values.push_back(*given);
        else if (defaults)
            whole.values.emplace_back(parameter.name, (*defaults)[parameter.name]);
        else
            throw usage(fmt::format("the config leaves out {}", parameter.name), help);
    }
    for (const auto& [name, value] : config.values)
        if (std::ranges::find(variant->parameters, name, &Parameter::name) == variant->parameters.end())
            throw usage(fmt::format("the variant '{}' has no parameter '{}'", variant->name, name), help);
    if (const auto objection = instance.objection(whole))
        throw usage(fmt::format("{} is not valid for {}: {}", whole.text(), instance.problem().text(), *objection));
    return whole;
}

std::optional<int> capability_from_text(std::string_view text) {
    if (!text.starts_with("sm_")) return std::nullopt;
    int cc = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + 3, end, cc);
    return error == std::errc{} && rest == end && cc > 0 ? std::optional{cc} : std::nullopt;
}

}  // namespace autotune
