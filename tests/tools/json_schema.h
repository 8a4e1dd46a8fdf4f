#ifndef AUTOTUNE_TESTS_TOOLS_JSON_SCHEMA_H
#define AUTOTUNE_TESTS_TOOLS_JSON_SCHEMA_H

#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace autotune {

/// Checks values against a JSON schema: the keywords that docs/json-lines.schema.json uses, and none quietly ignored.
/// Stricter than a reader is: a property that the schema does not list is an objection, so that none is forgotten.
class JsonSchema {
public:
    explicit JsonSchema(nlohmann::json schema) : root_(std::move(schema)) {}

    /// Why the value does not fit the schema, with the path of the part that does not; empty: it fits.
    std::string objection(const nlohmann::json& value) const { return check(value, root_, "$"); }

    /// The schema that $defs has by this name.
    std::string objection(const nlohmann::json& value, const std::string& definition) const {
        return check(value, root_["$defs"].at(definition), "$");
    }

    const nlohmann::json& root() const noexcept { return root_; }

private:
    using Json = nlohmann::json;

    std::string check(const Json& value, const Json& schema, const std::string& path) const {
        static const std::set<std::string> words{
            "$schema", "$defs",    "$ref",       "title", "description",          "type",  "const",
            "enum",    "required", "properties", "items", "additionalProperties", "oneOf", "minimum"};
        for (const auto& [word, unused] : schema.items())
            if (!words.contains(word)) return path + ": the schema says '" + word + "', which is not checked";
        if (schema.contains("$ref")) {
            const std::string name = schema["$ref"];
            const std::string mark = "#/$defs/";
            if (name.rfind(mark, 0) != 0) return path + ": no such reference: " + name;
            return check(value, root_["$defs"].at(name.substr(mark.size())), path);
        }
        if (schema.contains("type") && !is_any(value, schema["type"]))
            return path + ": is " + value.dump() + ", not " + schema["type"].dump();
        if (schema.contains("const") && value != schema["const"])
            return path + ": is " + value.dump() + ", not " + schema["const"].dump();
        if (schema.contains("enum") &&
            std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
            return path + ": " + value.dump() + " is none of " + schema["enum"].dump();
        if (schema.contains("minimum") && value.get<double>() < schema["minimum"].get<double>())
            return path + ": " + value.dump() + " is less than " + schema["minimum"].dump();
        if (schema.contains("oneOf")) return one_of(value, schema["oneOf"], path);
        if (value.is_object()) return object(value, schema, path);
        if (value.is_array() && schema.contains("items"))
            for (std::size_t i = 0; i < value.size(); ++i)
                if (auto wrong = check(value[i], schema["items"], path + "[" + std::to_string(i) + "]"); !wrong.empty())
                    return wrong;
        return {};
    }

    std::string one_of(const Json& value, const Json& choices, const std::string& path) const {
        std::size_t fitting = 0;
        std::string reasons;
        for (const Json& choice : choices) {
            const std::string wrong = check(value, choice, path);
            fitting += wrong.empty();
            if (!wrong.empty()) reasons += "\n  " + choice.dump() + ": " + wrong;
        }
        if (fitting == 1) return {};
        return path + ": fits " + std::to_string(fitting) + " of the choices" + reasons;
    }

    std::string object(const Json& value, const Json& schema, const std::string& path) const {
        for (const Json& name : schema.value("required", Json::array()))
            if (!value.contains(name)) return path + ": lacks " + name.dump();
        for (const auto& [name, part] : value.items()) {
            const Json* of = nullptr;
            if (schema.contains("properties") && schema["properties"].contains(name))
                of = &schema["properties"][name];
            else if (schema.contains("additionalProperties"))
                of = &schema["additionalProperties"];
            if (!of) return path + ": the schema does not list '" + name + "'";
            if (auto wrong = check(part, *of, path + "." + name); !wrong.empty()) return wrong;
        }
        return {};
    }

    static bool is_any(const Json& value, const Json& types) {
        if (types.is_string()) return is(value, types.get<std::string>());
        return std::any_of(types.begin(), types.end(), [&](const Json& type) { return is(value, type); });
    }

    static bool is(const Json& value, const std::string& type) {
        return type == "object"    ? value.is_object()
               : type == "array"   ? value.is_array()
               : type == "string"  ? value.is_string()
               : type == "boolean" ? value.is_boolean()
               : type == "integer" ? value.is_number_integer()
               : type == "number"  ? value.is_number()
               : type == "null"    ? value.is_null()
                                   : false;
    }

    Json root_;
};

}  // namespace autotune
#endif
