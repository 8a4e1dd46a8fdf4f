#include "tuner/model/op_json.h"

#include <fmt/format.h>

#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "autotune/error.h"
#include "tuner/model/evaluator.h"
#include "tuner/model/path.h"
#include "tuner/model/utf8.h"

namespace autotune {
namespace {

using Json = nlohmann::json;

constexpr std::size_t longest_text = 64u << 20;

// ---- What an op is made of, once for both directions.

template <class Archive>
void parts(Archive& archive, Field& field) {
    archive("name", field.name);
    archive.word("kind", field.kind, {"dim", "choice", "flag", "text"});
    archive("near", field.near);
    archive("choices", field.choices);
    archive("default", field.fallback);
    archive("about", field.about);
    archive("key", field.key);
    archive("from", field.from);
    archive("from_inputs", field.from_inputs);
}

template <class Archive>
void parts(Archive& archive, Constraint& constraint) {
    archive("claim", constraint.claim);
    archive("holds", constraint.holds);
}

template <class Archive>
void parts(Archive& archive, Scalar& scalar) {
    archive("name", scalar.name);
    archive("dtype", scalar.dtype);
    archive("default", scalar.fallback);
    archive("check", scalar.check);
}

template <class Archive>
void parts(Archive& archive, Fill& fill) {
    archive("kind", fill.kind);
    archive("arguments", fill.arguments);
    archive("junk_beyond", fill.junk_beyond);
}

template <class Archive>
void parts(Archive& archive, Tensor& tensor) {
    archive("name", tensor.name);
    archive("role", tensor.role);
    archive("dtype", tensor.dtype);
    archive("shape", tensor.shape);
    archive("strides", tensor.strides);
    archive("when", tensor.when);
    archive("may_alias", tensor.may_alias);
    archive("fill", tensor.fill);
    archive("key", tensor.key);
}

template <class Archive>
void parts(Archive& archive, ArgumentSpec& argument) {
    archive.word("kind", argument.kind, {"expression", "tensor_map", "reference_value", "reference_magnitude"});
    archive("expression", argument.expression);
    archive("tensor", argument.tensor);
    archive("box", argument.box);
    archive("swizzle", argument.swizzle);
}

template <class Archive>
void parts(Archive& archive, LaunchSpec& launch) {
    archive("entry", launch.entry);
    archive("source", launch.source);
    archive("when", launch.when);
    archive("repeat", launch.repeat);
    archive("grid", launch.grid);
    archive("block", launch.block);
    archive("cluster", launch.cluster);
    archive("shared", launch.shared);
    archive("cooperative", launch.cooperative);
    archive("args", launch.arguments);
}

template <class Archive>
void parts(Archive& archive, Reference& reference) {
    archive.word("kind", reference.kind, {"none", "cpp", "kernel", "npy"});
    archive("cpp", reference.cpp);
    archive("kernel", reference.kernel);
    archive("npy", reference.npy);
    archive("define", reference.define);
    archive("launch", reference.launches);
}

template <class Archive>
void parts(Archive& archive, Tolerance& tolerance) {
    archive("tensor", tolerance.tensor);
    archive("terms", tolerance.terms);
    archive("accumulate", tolerance.accumulate);
    archive("intermediate", tolerance.intermediate);
    archive("abs", tolerance.absolute);
    archive("rel", tolerance.relative);
    archive("exact", tolerance.exact);
}

template <class Archive>
void parts(Archive& archive, Parameter& parameter) {
    archive("name", parameter.name);
    archive("values", parameter.values);
    archive("default", parameter.fallback);
    archive("about", parameter.about);
}

template <class Archive>
void parts(Archive& archive, Scratch& scratch) {
    archive("name", scratch.name);
    archive("dtype", scratch.dtype);
    archive("shape", scratch.shape);
    archive("when", scratch.when);
    archive("zeroed", scratch.zeroed);
}

template <class Archive>
void parts(Archive& archive, Symbol& symbol) {
    archive("name", symbol.name);
    archive("from", symbol.from);
    archive("each_launch", symbol.each_launch);
}

template <class Archive>
void parts(Archive& archive, Variant& variant) {
    archive("name", variant.name);
    archive("source", variant.source);
    archive("entry", variant.entry);
    archive("include", variant.include);
    archive("needs", variant.needs);
    archive("define", variant.define);
    archive("parameters_as_template", variant.parameters_as_template);
    archive("parameters", variant.parameters);
    archive("constraints", variant.constraints);
    archive("scratch", variant.scratch);
    archive("symbols", variant.symbols);
    archive("launches", variant.launches);
    archive("options", variant.options);
    archive("arch", variant.arch);
    archive("spill_bytes", variant.spill_bytes);
    archive("pipelined", variant.pipelined);
    archive("deterministic", variant.deterministic);
    archive("idempotent", variant.idempotent);
}

template <class Archive>
void parts(Archive& archive, Op& op) {
    archive("format", op.format);
    archive("name", op.name);
    archive("summary", op.summary);
    archive("fields", op.fields);
    archive("constraints", op.constraints);
    archive("scalars", op.scalars);
    archive("tensors", op.tensors);
    archive("lets", op.lets);
    archive("flops", op.flops);
    archive("bytes", op.bytes);
    archive("reference", op.reference);
    archive("inputs_cpp", op.inputs_cpp);
    archive("tolerances", op.tolerances);
    archive("check_problems", op.check_problems);
    archive("variants", op.variants);
    archive("files", op.files);
    archive("folder", op.folder);
    archive("toml", op.toml);
    archive("builtin", op.builtin);
}

template <class T>
concept HasParts = requires(T& part, struct Writer& archive) {
    parts(archive, part);
};

// ---- Bytes that are no UTF-8 become `{"bytes": "..."}`, one character a byte.

std::string widened(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x80) {
            out += c;
        } else {
            out += static_cast<char>(0xc0u | (byte >> 6));
            out += static_cast<char>(0x80u | (byte & 0x3fu));
        }
    }
    return out;
}

/// nullopt: holds a character beyond one byte.
std::optional<std::string> narrowed(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const auto lead = static_cast<unsigned char>(text[i]);
        if (lead >= 0x80) {
            if (lead > 0xc3 || i + 1 >= text.size()) return std::nullopt;
            out += static_cast<char>(((lead & 0x03u) << 6) | (static_cast<unsigned char>(text[++i]) & 0x3fu));
        } else {
            out += text[i];
        }
    }
    return out;
}

// ---- Writing. Empty texts, lists and expressions are left out.

struct Writer {
    Json& out;

    static Json json(const std::string& text) {
        if (is_utf8(text)) return text;
        return Json{{"bytes", widened(text)}};
    }
    static Json json(const Value& value) {
        return std::visit(
            [](const auto& one) -> Json {
                if constexpr (std::is_same_v<std::decay_t<decltype(one)>, std::string>)
                    return json(one);
                else
                    return one;
            },
            value);
    }
    static Json json(const Expression& expression) {
        // A word may hold both kinds of quotes; then its text is no expression.
        const ExpressionNode* node = expression.node();
        if (node && node->kind == NodeKind::constant && std::holds_alternative<std::string>(node->value) &&
            Expression::constant(node->value).text() == expression.text())
            return Json{{"word", json(node->value)}};
        return expression.text();
    }
    static Json json(DType dtype) { return std::string{name_of(dtype)}; }
    static Json json(bool flag) { return flag; }
    static Json json(int number) { return number; }
    template <class T>
    static Json json(const std::pair<std::string, T>& pair) {
        return Json::array({json(pair.first), json(pair.second)});
    }
    template <class T>
    static Json json(const std::vector<T>& list) {
        Json array = Json::array();
        for (const T& one : list) array.push_back(json(one));
        return array;
    }
    static Json json(const std::map<std::string, std::string>& files) {
        Json object = Json::object();
        for (const auto& [name, text] : files) object[name] = json(text);
        return object;
    }
    template <HasParts T>
    static Json json(const T& part) {
        Json object = Json::object();
        Writer writer{object};
        parts(writer, const_cast<T&>(part));  // parts() only reads here; it is written once for both directions
        return object;
    }

    template <class T>
    void operator()(const char* key, const T& value) {
        if constexpr (requires { value.empty(); })
            if (value.empty()) return;
        out[key] = json(value);
    }
    void operator()(const char* key, const Value& value) { out[key] = json(value); }
    void operator()(const char* key, const std::optional<int>& number) {
        if (number) out[key] = *number;
    }
    template <class Enum>
    void word(const char* key, const Enum& value, std::initializer_list<const char*> words) {
        out[key] = words.begin()[static_cast<std::size_t>(value)];
    }
};

// ---- Reading: of a text that may be anyone's.

/// Where the reader is, as a chain to the top; made a text only for an error.
struct Where {
    const Where* above = nullptr;
    const char* key = nullptr;  ///< in an object; nullptr: an element of a list
    std::size_t index = 0;
};

std::string text_of(const Where* where) {
    if (where == nullptr) return {};
    const std::string above = text_of(where->above);
    if (where->key == nullptr) return fmt::format("{}[{}]", above, where->index);
    return above.empty() ? std::string{where->key} : fmt::format("{}.{}", above, where->key);
}

[[noreturn]] void refuse(const Where* where, const std::string& why) {
    throw Error{Error::Kind::usage,
                fmt::format("this is no op in JSON: {} {}", where ? text_of(where) : "the text", why)};
}

/// Whether lists and objects go deeper than those of any op: a parser would follow them to the end.
bool too_deep(std::string_view text) {
    constexpr int deepest = 32;
    int depth = 0;
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (quoted && c == '\\') ++i;
        if (c == '"') quoted = !quoted;
        if (quoted) continue;
        depth += (c == '[' || c == '{') - (c == ']' || c == '}');
        if (depth > deepest) return true;
    }
    return false;
}

struct Reader {
    const Json& in;
    const Where* where;
    std::size_t taken = 0;

    static void get(const Json& from, std::string& text, const Where* at) {
        if (from.is_object() && from.size() == 1 && from.contains("bytes") && from["bytes"].is_string()) {
            const auto bytes = narrowed(from["bytes"].get_ref<const std::string&>());
            if (!bytes) refuse(at, "holds a character that is no byte");
            text = *bytes;
            return;
        }
        if (!from.is_string()) refuse(at, "is no text");
        text = from.get_ref<const std::string&>();
    }
    static void get(const Json& from, bool& flag, const Where* at) {
        if (!from.is_boolean()) refuse(at, "is neither true nor false");
        flag = from.get<bool>();
    }
    static void get(const Json& from, std::int64_t& number, const Where* at) {
        if (!from.is_number_integer()) refuse(at, "is no integer");
        if (from.is_number_unsigned() &&
            from.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
            refuse(at, "is beyond 64 bits");
        number = from.get<std::int64_t>();
    }
    static void get(const Json& from, int& number, const Where* at) {
        std::int64_t wide = 0;
        get(from, wide, at);
        if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
            refuse(at, "is beyond 32 bits");
        number = static_cast<int>(wide);
    }
    static void get(const Json& from, std::optional<int>& number, const Where* at) { get(from, number.emplace(), at); }
    static void get(const Json& from, Value& value, const Where* at) {
        if (from.is_boolean()) {
            value = from.get<bool>();
        } else if (from.is_number_float()) {
            value = from.get<double>();
        } else if (from.is_number()) {
            std::int64_t number = 0;
            get(from, number, at);
            value = number;
        } else {
            std::string text;
            get(from, text, at);
            value = std::move(text);
        }
    }
    static void get(const Json& from, Expression& expression, const Where* at) {
        if (from.is_object() && from.size() == 1 && from.contains("word")) {
            std::string word;
            get(from["word"], word, at);
            expression = Expression::constant(std::move(word));
            return;
        }
        std::string text;
        get(from, text, at);
        try {
            if (!text.empty()) expression = Expression::parse(text);
        } catch (const ParseError& error) {
            refuse(at, fmt::format("is no expression: {}", error.what()));
        }
    }
    static void get(const Json& from, DType& dtype, const Where* at) {
        std::string text;
        get(from, text, at);
        const auto named = dtype_named(text);
        if (!named) refuse(at, "is no type");
        dtype = *named;
    }
    template <class T>
    static void get(const Json& from, std::pair<std::string, T>& pair, const Where* at) {
        if (!from.is_array() || from.size() != 2) refuse(at, "is no pair");
        get(from[0], pair.first, at);
        get(from[1], pair.second, at);
    }
    template <class T>
    static void get(const Json& from, std::vector<T>& list, const Where* at) {
        if (!from.is_array()) refuse(at, "is no list");
        list.reserve(from.size());
        for (const Json& one : from) {
            const Where here{at, nullptr, list.size()};
            get(one, list.emplace_back(), &here);
        }
    }
    static void get(const Json& from, std::map<std::string, std::string>& files, const Where* at) {
        if (!from.is_object()) refuse(at, "is no object");
        for (const auto& [name, text] : from.items()) {
            if (const auto objection = path_objection(name))
                refuse(at, fmt::format("holds the path '{}', which {}", name, *objection));
            get(text, files[name], at);
        }
    }
    template <HasParts T>
    static void get(const Json& from, T& part, const Where* at) {
        if (!from.is_object()) refuse(at, "is no object");
        Reader reader{from, at};
        parts(reader, part);
        if (reader.taken != from.size()) refuse(at, "holds an unknown key");
    }

    template <class T>
    void operator()(const char* key, T& value) {
        const auto found = in.find(key);
        if (found == in.end()) {
            // What the writer leaves out when empty may be missing; all else was written.
            if constexpr (!requires { value.empty(); } && !std::is_same_v<T, std::optional<int>>)
                refuse(where, fmt::format("has no '{}'", key));
            return;
        }
        ++taken;
        const Where here{where, key};
        get(*found, value, &here);
    }
    template <class Enum>
    void word(const char* key, Enum& value, std::initializer_list<const char*> words) {
        std::string text;
        (*this)(key, text);
        for (std::size_t i = 0; i < words.size(); ++i)
            if (text == words.begin()[i]) {
                value = static_cast<Enum>(i);
                return;
            }
        refuse(where, fmt::format("has an unknown '{}'", key));
    }
};

}  // namespace

std::string op_to_json(const Op& op) { return Writer::json(op).dump(); }

Op op_from_json(std::string_view text) {
    if (text.size() > longest_text)
        refuse(nullptr, fmt::format("has {} bytes, at most {} are read", text.size(), longest_text));
    if (too_deep(text)) refuse(nullptr, "is deeper than any op");
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) refuse(nullptr, "is no JSON");
    Op op;
    Reader::get(json, op, nullptr);
    const auto check_path = [](const std::string& path) {
        if (const auto objection = path_objection(path); objection && !path.empty())
            refuse(nullptr, fmt::format("holds the path '{}', which {}", path, *objection));
    };
    check_path(op.reference.cpp);
    check_path(op.inputs_cpp);
    for (const auto& [tensor, path] : op.reference.npy) check_path(path);
    return op;
}

}  // namespace autotune
