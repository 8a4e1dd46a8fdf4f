#include "tuner/model/problem_key.h"

#include <map>
#include <nlohmann/json.hpp>

#include "tuner/model/hashing.h"
#include "tuner/model/instance_data.h"

namespace autotune {
namespace {

std::map<std::string, Value> key_fields(const Instance::Data& data) {
    std::map<std::string, Value> out;
    for (const Field& field : data.op->fields)
        if (field.key) out.emplace(field.name, *data.problem.find(field.name));
    for (const BoundTensor& tensor : data.tensors) {
        if (!tensor.present || !tensor.spec->key) continue;
        out.emplace(tensor.name + ".align", std::int64_t{tensor.align});
        out.emplace(tensor.name + ".layout", layout_of(tensor));
    }
    return out;
}

}  // namespace

std::string layout_of(const BoundTensor& tensor) {
    if (tensor.contiguous) return "contiguous";
    std::int64_t inside = 1;
    for (std::size_t i = tensor.shape.size(); i-- > 0;) {
        if (tensor.shape[i] <= 1) continue;  // its stride is never taken
        const bool last = i + 1 == tensor.shape.size();
        if (last ? tensor.strides[i] != 1 : tensor.strides[i] < inside) return "other";
        inside = tensor.strides[i] * tensor.shape[i];
    }
    return "pitched";
}

std::vector<std::byte> canonical_key(const Instance::Data& data) {
    const auto fields = key_fields(data);
    CanonicalBytes bytes;
    bytes.add(problem_key_version).add(data.op->name).add(std::uint64_t{fields.size()});
    for (const auto& [name, value] : fields) bytes.add(name).add_value(value);
    return std::move(bytes).bytes();
}

std::string key_json(const Instance::Data& data) {
    auto json = nlohmann::json::object();
    for (const auto& [name, value] : key_fields(data))
        std::visit([&](const auto& inner) { json[name] = inner; }, value);
    // A text of the user's may be no UTF-8; the canonical bytes hold it as it is.
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace autotune
