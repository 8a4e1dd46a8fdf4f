// The part of the C API that dispatches: include/autotune/autotune.h over include/autotune/dispatcher.h.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "autotune/autotune.h"
#include "autotune/dispatcher.h"
#include "c_api/given_options.h"
#include "c_api/guarded.h"
#include "c_api/output.h"
#include "tools/request.h"
#include "tuner/chains/chain_op.h"
#include "tuner/loader/user_ops.h"
#include "tuner/model/op_set.h"

struct autotune_handle {
    autotune::Dispatcher* dispatcher;
    autotune::Handle handle;
};

struct autotune_dispatcher {
    std::optional<autotune::OpSet> ops;  // before the dispatcher, which refers to it
    std::optional<autotune::Dispatcher> dispatcher;
    const pid_t process = ::getpid();
    std::mutex mutex;  // of the handles
    std::map<std::pair<std::string, std::string>, autotune_handle> handles;
};

namespace autotune::c_api {
namespace {

/// What the first version of the struct had; more may have come.
constexpr std::size_t least_decision = offsetof(autotune_decision, why) + sizeof(const char*);

FieldValues fields_of(const char* text, std::string_view what) {
    if (!text || !*text) return {};
    FieldValues fields = problem_from_text(text);
    for (auto at = fields.begin(); at != fields.end(); ++at)
        if (std::find_if(fields.begin(), at, [&](const auto& field) { return field.first == at->first; }) != at)
            throw misuse(fmt::format("'{}' is given twice in the {} '{}'", at->first, what, text));
    return fields;
}

thread_local std::deque<CaptureScope> capture_scopes;

/// A call's arguments in the form of the C++ API: on the stack, and only as many as there are are written.
template <class Argument>
class Arguments {
public:
    void push(const Argument& argument) noexcept { new (bytes_ + sizeof(Argument) * size_++) Argument{argument}; }
    std::span<const Argument> all() const noexcept { return {reinterpret_cast<const Argument*>(bytes_), size_}; }

private:
    static_assert(std::is_trivially_destructible_v<Argument>);
    alignas(Argument) std::byte bytes_[AUTOTUNE_MOST_TENSORS * sizeof(Argument)];
    std::size_t size_ = 0;
};

[[noreturn]] void refuse(const autotune_tensor& tensor, std::size_t number) {
    if (tensor.dtype < 0 || static_cast<std::size_t>(tensor.dtype) >= dtypes.size())
        throw misuse(fmt::format("tensor {} has dtype {}, which is none of enum autotune_dtype", number, tensor.dtype));
    if (tensor.rank < 0) throw misuse(fmt::format("tensor {} has rank {}", number, tensor.rank));
    throw misuse(fmt::format("tensor {} has rank {} and no shape", number, tensor.rank));
}

TensorArgument tensor_of(const autotune_tensor& tensor, std::size_t number) {
    const auto rank = static_cast<std::size_t>(tensor.rank);
    if (static_cast<std::uint32_t>(tensor.dtype) >= dtypes.size() || tensor.rank < 0 || (rank > 0 && !tensor.shape))
        refuse(tensor, number);
    return {.data = tensor.data,
            .dtype = static_cast<DType>(tensor.dtype),
            .shape = {tensor.shape, rank},
            .strides = {tensor.strides, tensor.strides ? rank : 0}};
}

/// The C struct has the size that its caller knows: later fields are left out, and those that only a newer header has
/// are zero.
void tell(const Decision& decision, autotune_decision* out) {
    // Texts of a decision are whole strings, so that a zero follows.
    const auto text = [](std::string_view view) { return view.empty() ? "" : view.data(); };
    autotune_decision filled{};
    filled.size = out->size;
    filled.rung = static_cast<std::int32_t>(decision.rung);
    filled.layer = static_cast<std::int32_t>(decision.layer);
    filled.error = decision.error;
    filled.distance = decision.distance;
    filled.launched = decision.launched;
    filled.verified = decision.verified;
    filled.stale = decision.stale;
    filled.imported = decision.imported;
    filled.config = text(decision.config);
    filled.why = text(decision.why);
    if (filled.size == sizeof filled) {
        *out = filled;
        return;
    }
    std::memcpy(out, &filled, std::min(filled.size, sizeof filled));
    if (filled.size > sizeof filled)
        std::memset(reinterpret_cast<char*>(out) + sizeof filled, 0, filled.size - sizeof filled);
}

/// What a function that dispatches returns.
int answered(const Decision& answer, autotune_decision* decision) {
    if (decision) tell(answer, decision);
    return answer.rung == Rung::none ? failed(AUTOTUNE_UNAVAILABLE, answer.why) : AUTOTUNE_OK;
}

void require_size(const autotune_decision* decision) {
    if (decision && decision->size < least_decision)
        throw misuse(
            fmt::format("autotune_decision.size is {}, and the least there is is {}", decision->size, least_decision));
}

static_assert(static_cast<int>(Rung::nearest) == AUTOTUNE_NEAREST &&
              static_cast<int>(Rung::robust) == AUTOTUNE_ROBUST &&
              static_cast<int>(Rung::predicted) == AUTOTUNE_PREDICTED && static_cast<int>(Rung::none) == AUTOTUNE_NONE);
static_assert(static_cast<int>(Layer::project) == AUTOTUNE_LAYER_PROJECT &&
              static_cast<int>(Layer::op) == AUTOTUNE_LAYER_OP);

static_assert(static_cast<int>(OnMiss::tune_behind) == AUTOTUNE_TUNE_BEHIND &&
              static_cast<int>(OnMiss::fail) == AUTOTUNE_FAIL);

using Call = Decision (Dispatcher::*)(const Handle&, std::span<const TensorArgument>, std::span<const ScalarArgument>,
                                      CUstream_st*);

template <Call call>
int dispatch(const autotune_handle* handle, const autotune_tensor* tensors, std::size_t tensor_count,
             const autotune_scalar* scalars, std::size_t scalar_count, void* stream, autotune_decision* decision) {
    require(handle, "the handle");
    require(tensors || tensor_count == 0, "tensors");
    require(scalars || scalar_count == 0, "scalars");
    require_size(decision);
    if (tensor_count > AUTOTUNE_MOST_TENSORS || scalar_count > AUTOTUNE_MOST_TENSORS)
        throw misuse(fmt::format("a call brought {} tensors and {} scalars, and {} of each are the most", tensor_count,
                                 scalar_count, AUTOTUNE_MOST_TENSORS));
    Arguments<TensorArgument> taken;
    for (std::size_t i = 0; i < tensor_count; ++i) taken.push(tensor_of(tensors[i], i));
    Arguments<ScalarArgument> values;
    for (std::size_t i = 0; i < scalar_count; ++i)
        values.push(scalars[i].is_integer ? ScalarArgument{scalars[i].value.integer}
                                          : ScalarArgument{scalars[i].value.real});
    return answered(
        (handle->dispatcher->*call)(handle->handle, taken.all(), values.all(), static_cast<CUstream_st*>(stream)),
        decision);
}

/// `rows=4096,x.align=4` as an expected call has it.
ExpectedCall expected_call(const Handle& handle, const char* problem) {
    ExpectedCall call{.handle = handle};
    for (auto& [name, value] : fields_of(problem, "problem")) {
        constexpr std::string_view suffix = ".align";
        const auto* bytes = std::get_if<std::int64_t>(&value);
        if (!name.ends_with(suffix))
            call.problem.emplace_back(name, value);
        else if (bytes && *bytes >= 1 && *bytes <= 1 << 20)
            call.align.emplace_back(name.substr(0, name.size() - suffix.size()), static_cast<int>(*bytes));
        else
            throw misuse(fmt::format("{}={} is no alignment: it takes bytes, a power of two", name, to_text(value)));
    }
    return call;
}

nlohmann::json json_of(const Explanation& answer) {
    nlohmann::json rows = nlohmann::json::array(), closest = nlohmann::json::array();
    for (const Explanation::Row& row : answer.rows)
        rows.push_back({{"rung", row.rung},
                        {"problem", row.problem},
                        {"config", row.config},
                        {"time_us", row.time_us},
                        {"state", row.state},
                        {"refused", row.refused},
                        {"chosen", row.chosen},
                        {"layer", row.layer},
                        {"device", row.device},
                        {"distance", row.distance},
                        {"imported", row.imported},
                        {"why", row.why}});
    for (const auto& [problem, differs] : answer.closest)
        closest.push_back({{"problem", problem}, {"differs", differs}});
    return {{"rung", name_of(answer.rung)},
            {"layer", name_of(answer.layer)},
            {"config", answer.config},
            {"why", answer.why},
            {"rows", rows},
            {"closest", closest}};
}

}  // namespace
}  // namespace autotune::c_api

using namespace autotune::c_api;

int autotune_dispatcher_create(const autotune_options* given, autotune_dispatcher** out) {
    return guarded([&] {
        require(out, "out");
        *out = nullptr;
        const autotune_options options = options_of(given);
        auto made = std::make_unique<autotune_dispatcher>();
        const std::vector<std::string> folders = words_of(options.op_folders, options.op_folder_count, "op_folders");
        const std::vector<std::string> chains = words_of(options.chains, options.chain_count, "chains");
        if (!folders.empty() || !chains.empty()) made->ops.emplace();
        for (const std::string& folder : folders) autotune::add_op_folder(*made->ops, folder);
        for (const std::string& chain : chains) autotune::add_chain(*made->ops, chain);
        made->dispatcher.emplace(dispatcher_options(options, made->ops ? &*made->ops : nullptr));
        *out = made.release();
        return AUTOTUNE_OK;
    });
}

void autotune_dispatcher_destroy(autotune_dispatcher* dispatcher) {
    guarded([&] {
        delete dispatcher;
        return AUTOTUNE_OK;
    });
}

int autotune_prepare(autotune_dispatcher* dispatcher, const char* op, const char* fields, const autotune_handle** out) {
    return guarded([&] {
        require(out, "out");
        *out = nullptr;
        require(dispatcher, "the dispatcher");
        require(op, "the op's name");
        // It refuses a child of a fork, where a thread that is not there may hold the lock.
        if (dispatcher->process != ::getpid()) dispatcher->dispatcher->prepare(op);
        const std::lock_guard lock{dispatcher->mutex};
        const auto key = std::pair<std::string, std::string>{op, fields ? fields : ""};
        auto at = dispatcher->handles.find(key);
        if (at == dispatcher->handles.end()) {
            const autotune::Handle handle = dispatcher->dispatcher->prepare(op, fields_of(fields, "fields"));
            at = dispatcher->handles.emplace(key, autotune_handle{&*dispatcher->dispatcher, handle}).first;
        }
        *out = &at->second;
        return AUTOTUNE_OK;
    });
}

int autotune_launch(const autotune_handle* handle, const autotune_tensor* tensors, size_t tensor_count,
                    const autotune_scalar* scalars, size_t scalar_count, void* stream, autotune_decision* decision) {
    return guarded([&] {
        return dispatch<&autotune::Dispatcher::launch>(handle, tensors, tensor_count, scalars, scalar_count, stream,
                                                       decision);
    });
}

int autotune_ready(const autotune_handle* handle, const autotune_tensor* tensors, size_t tensor_count,
                   const autotune_scalar* scalars, size_t scalar_count, void* stream, autotune_decision* decision) {
    return guarded([&] {
        return dispatch<&autotune::Dispatcher::ready>(handle, tensors, tensor_count, scalars, scalar_count, stream,
                                                      decision);
    });
}

int autotune_ready_problem(const autotune_handle* handle, const char* problem, void* stream,
                           autotune_decision* decision) {
    return guarded([&] {
        require(handle, "the handle");
        require_size(decision);
        const autotune::ExpectedCall calls[] = {expected_call(handle->handle, problem)};
        return answered(handle->dispatcher->prepare(calls, static_cast<CUstream_st*>(stream)).at(0), decision);
    });
}

int autotune_freeze(autotune_dispatcher* dispatcher) {
    return guarded([&] {
        require(dispatcher, "the dispatcher");
        dispatcher->dispatcher->freeze();
        return AUTOTUNE_OK;
    });
}

int autotune_thaw(autotune_dispatcher* dispatcher) {
    return guarded([&] {
        require(dispatcher, "the dispatcher");
        dispatcher->dispatcher->thaw();
        return AUTOTUNE_OK;
    });
}

int autotune_export_decisions(const autotune_dispatcher* dispatcher, autotune_output output, void* context) {
    return guarded([&] {
        require(dispatcher, "the dispatcher");
        require(reinterpret_cast<const void*>(output), "output");
        Output out{output, context};
        const std::vector<std::byte> bytes = dispatcher->dispatcher->export_decisions();
        out.text(AUTOTUNE_RESULT, std::string{reinterpret_cast<const char*>(bytes.data()), bytes.size()});
        return out.status();
    });
}

int autotune_import_decisions(autotune_dispatcher* dispatcher, const void* bytes, size_t size, uint64_t* taken,
                              uint64_t* refused, autotune_output output, void* context) {
    return guarded([&] {
        require(dispatcher, "the dispatcher");
        require(bytes || size == 0, "bytes");
        for (uint64_t* const count : {taken, refused})
            if (count) *count = 0;  // also where the bytes are refused
        const autotune::ImportedDecisions became =
            dispatcher->dispatcher->import_decisions({static_cast<const std::byte*>(bytes), size});
        if (taken) *taken = became.taken;
        if (refused) *refused = became.refused;
        Output out{output, context};
        for (const std::string& why : became.why) out.text(AUTOTUNE_NOTICE, why + '\n');
        return out.status();
    });
}

int autotune_decision_hash(const autotune_dispatcher* dispatcher, uint64_t* hash) {
    return guarded([&] {
        require(dispatcher, "the dispatcher");
        require(hash, "hash");
        *hash = dispatcher->dispatcher->decision_hash();
        return AUTOTUNE_OK;
    });
}

int32_t autotune_rung_count(void) { return static_cast<int32_t>(autotune::rung_names.size()); }

const char* autotune_rung_name(int32_t rung) {
    return rung >= 0 && rung < autotune_rung_count() ? autotune::rung_names[static_cast<std::size_t>(rung)].data() : "";
}

const char* autotune_layer_name(int32_t layer) {
    constexpr auto count = static_cast<int32_t>(autotune::layer_names.size());
    return layer >= 0 && layer < count ? autotune::layer_names[static_cast<std::size_t>(layer)].data() : "";
}

int autotune_capture_begin(void) {
    return guarded([] {
        capture_scopes.emplace_back();
        return AUTOTUNE_OK;
    });
}

int autotune_capture_end(void) {
    return guarded([] {
        if (capture_scopes.empty()) throw misuse("autotune_capture_end() was called without a begin on this thread");
        capture_scopes.pop_back();
        return AUTOTUNE_OK;
    });
}

int autotune_refresh(autotune_dispatcher* dispatcher) {
    return guarded([&] {
        require(dispatcher, "the dispatcher");
        dispatcher->dispatcher->refresh();
        return AUTOTUNE_OK;
    });
}

int autotune_counts(const autotune_dispatcher* dispatcher, uint64_t* counts, size_t capacity) {
    return guarded([&] {
        require(dispatcher, "the dispatcher");
        require(counts || capacity == 0, "counts");
        const auto now = dispatcher->dispatcher->counts();
        for (std::size_t i = 0; i < capacity; ++i) counts[i] = i < now.size() ? now[i] : 0;
        return AUTOTUNE_OK;
    });
}

int autotune_misses(const autotune_dispatcher* dispatcher, autotune_output output, void* context) {
    return guarded([&] {
        require(dispatcher, "the dispatcher");
        require(reinterpret_cast<const void*>(output), "output");
        Output out{output, context};
        for (const autotune::Miss& miss : dispatcher->dispatcher->misses()) {
            std::string problem = miss.problem;
            std::ranges::replace(problem, ' ', ',');
            out.line({{"op", miss.op}, {"problem", problem}, {"device", miss.device}});
            if (out.stopped()) break;
        }
        return out.status();
    });
}

int autotune_explain(const autotune_dispatcher* dispatcher, const char* op, const char* problem, int device,
                     autotune_output output, void* context) {
    return guarded([&] {
        require(dispatcher, "the dispatcher");
        require(op, "the op's name");
        require(reinterpret_cast<const void*>(output), "output");
        Output out{output, context};
        out.line(json_of(dispatcher->dispatcher->explain(op, fields_of(problem, "problem"), device)));
        return out.status();
    });
}

int autotune_pin(autotune_dispatcher* dispatcher, const char* op, const char* fields, const char* config) {
    return guarded([&] {
        require(dispatcher, "the dispatcher");
        require(op, "the op's name");
        require(config, "the config");
        dispatcher->dispatcher->pin(op, fields_of(fields, "fields"), config);
        return AUTOTUNE_OK;
    });
}

int autotune_unpin(autotune_dispatcher* dispatcher, const char* op, int32_t* dropped) {
    return guarded([&] {
        require(dispatcher, "the dispatcher");
        require(op, "the op's name");
        const bool was = dispatcher->dispatcher->unpin(op);
        if (dropped) *dropped = was;
        return AUTOTUNE_OK;
    });
}
