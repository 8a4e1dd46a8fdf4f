#include "tuner/loader/op_loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <system_error>

#include "autotune/error.h"
#include "tuner/loader/builder.h"
#include "tuner/model/evaluator.h"
#include "tuner/model/path.h"
#include "tuner/model/suggest.h"

namespace autotune {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t format_version = 1;

std::vector<std::string> split(std::string_view words) {
    std::vector<std::string> list;
    while (!words.empty()) {
        const std::size_t end = words.find(' ');
        list.emplace_back(words.substr(0, end));
        words = end == std::string_view::npos ? std::string_view{} : words.substr(end + 1);
    }
    return list;
}

}  // namespace

Op Builder::build() {
    const Section top{document_, document_.root(), "the top"};
    begin(top);
    if (const Node* problem = top.find("problem")) read_problem(*problem);
    const auto each = [&](std::string_view key, void (Builder::*read)(const Node&)) {
        if (const Node* array = top.find(key))
            for (const Node& one : array->children) (this->*read)(one);
    };
    const auto once = [&](std::string_view key, void (Builder::*read)(const Node&)) {
        if (const Node* table = top.find(key)) (this->*read)(*table);
    };
    each("scalar", &Builder::read_scalar);
    each("tensor", &Builder::read_tensor);
    once("let", &Builder::read_let);
    once("work", &Builder::read_work);
    once("reference", &Builder::read_reference);
    once("tolerance", &Builder::read_tolerance);
    once("check", &Builder::read_check);
    if (const Node* inputs = top.find("inputs"))
        op_.inputs_cpp = read_file(Section{document_, *inputs, "[inputs]"}.at("cpp"), true);
    each("kernel", &Builder::read_variant);
    finish();
    return std::move(op_);
}

void Builder::begin(const Section& top) {
    const Node& format = top.at("format");
    const auto version = std::get<std::int64_t>(format.value);
    if (version != format_version)
        document_.fail(format,
                       fmt::format("this file is of format {}; this program reads format {}", version, format_version));
    if (top.has("op") == top.has("extends"))
        document_.fail({1, 1}, top.has("op")
                                   ? "the file says op and extends; it is one of them"
                                   : "the file says neither op nor extends: op = \"NAME\" for an op of its own");
    if (top.has("extends")) {
        begin_extension(top);
        return;
    }
    op_.name = top.text("op");
    if (!top.has("summary"))
        document_.fail(top.at("op"),
                       fmt::format("op '{}' has no summary: one line that says what it computes", op_.name));
    op_.summary = top.text("summary");
    op_.builtin = options_.builtin;
    op_.toml = document_.text();
    if (!top.has("reference"))
        document_.fail(top.at("op"),
                       fmt::format("op '{}' has no [reference], so no result of it can be checked", op_.name));
    if (!top.has("kernel"))
        document_.fail(top.at("op"), fmt::format("op '{}' has no [[kernel]], so there is nothing to run", op_.name));
}

void Builder::begin_extension(const Section& top) {
    const std::string name = top.text("extends");
    base_ = options_.known ? options_.known(name) : nullptr;
    if (base_ == nullptr)
        document_.fail(top.at("extends"), fmt::format("there is no op '{}' to extend", name), "autotune ops");
    const std::vector<std::string> allowed = split("format extends summary let kernel");
    for (const Node& child : document_.root().children)
        if (std::ranges::find(allowed, child.key) == allowed.end())
            document_.fail_key(
                child, fmt::format("'{}' has no place in a file that extends '{}'; it takes summary, let and kernel",
                                   child.key, name));
    if (!top.has("kernel")) document_.fail(top.at("extends"), fmt::format("the file adds no [[kernel]] to '{}'", name));
    op_ = *base_;
    op_.toml += fmt::format("\n# {} adds:\n{}", document_.name(), document_.text());
    for (const Field& field : op_.fields) {
        names_.declare(use_field, field.name, nullptr);
        if (field.kind == Field::Kind::choice) names_.declare_choices(field.name, field.choices);
    }
    for (const Scalar& scalar : op_.scalars) names_.declare(use_scalar, scalar.name, nullptr);
    for (const Tensor& tensor : op_.tensors) names_.declare(use_tensor, tensor.name, nullptr);
    for (const auto& [let, value] : op_.lets) names_.declare_let(let, value, nullptr);
    for (const Tensor& tensor : op_.tensors)
        for (const Expression& stride : tensor.strides)
            if (const auto free = stride.bare_name(); free && !names_.known(*free)) names_.declare_stride(*free);
}

void Builder::finish() {
    std::set<std::string> parameters;
    const auto add = [&](const Variant& variant) {
        for (const Parameter& parameter : variant.parameters) parameters.insert(parameter.name);
    };
    std::ranges::for_each(op_.variants, add);
    std::ranges::for_each(read_, add);
    check_strides(parameters);
    op_.lets = names_.sorted_lets(parameters);
    for (const Pending& one : pending_) names_.check(one.expression, *one.node, one.place);
    for (const Pending& one : arguments_) check_argument(one);
    check_tensors();
    std::ranges::move(read_, std::back_inserter(op_.variants));
    if (base_) return;
    check_outputs();
    if (op_.reference.kind == Reference::Kind::kernel && op_.variant(op_.reference.kernel) == nullptr) {
        std::vector<std::string> known;
        for (const Variant& variant : op_.variants) known.push_back(variant.name);
        document_.fail(
            *document_.root().find("reference")->find("kernel"),
            fmt::format("there is no variant '{}'; the variants are {}", op_.reference.kernel, enumerated(known)));
    }
}

Expression Builder::expression(const Node& node, const Place& place, std::string_view words) {
    const std::vector<std::string> list = split(words);
    const auto parse = [&]() -> Expression {
        if (!node.is_text()) return Expression::constant(node.value);
        if (std::ranges::find(list, node.text()) != list.end()) return Expression::constant(node.value);
        try {
            return Expression::parse(node.text());
        } catch (const ParseError& error) {
            document_.fail_inside(node, error.offset(), 1, fmt::format("this is no expression: {}", error.what()));
        }
    };
    pending_.push_back({parse(), &node, place});
    pending_.back().place.words = list;
    return pending_.back().expression;
}

Expression Builder::optional_expression(const Section& section, std::string_view key, const Place& place,
                                        std::string_view words) {
    const Node* node = section.find(key);
    return node ? expression(*node, place, words) : Expression{};
}

std::vector<Expression> Builder::expressions(const Section& section, std::string_view key, const Place& place) {
    std::vector<Expression> out;
    if (const Node* array = section.find(key))
        for (const Node& one : array->children) {
            if (one.kind == Node::Kind::table) document_.fail(one, "a tensor map is an argument; it cannot stand here");
            out.push_back(expression(one, place));
        }
    return out;
}

Constraint Builder::constraint(const Node& node, std::string_view title, const Place& place) {
    const Section section{document_, node, title};
    return {.claim = section.text("claim"), .holds = expression(section.at("holds"), place)};
}

void Builder::check_leaves(const Expression& expression, const Node& node,
                           const std::function<bool(const Value&)>& fits, std::string_view must) const {
    for (const ExpressionNode* leaf : leaves_of(expression)) {
        if (leaf->kind != NodeKind::constant || fits(leaf->value)) continue;
        const std::string message = fmt::format("this is '{}', but {}", to_text(leaf->value), must);
        if (node.is_text() && expression.text() == node.text())
            document_.fail_inside(node, leaf->offset, leaf->piece.size(), message);
        document_.fail(node, message);
    }
}

void Builder::check_dtype(const Expression& expression, const Node& node) const {
    const auto is_dtype = [](const Value& value) {
        const auto* word = std::get_if<std::string>(&value);
        return word && dtype_named(*word);
    };
    std::vector<std::string> known;
    for (const DTypeInfo& row : dtypes) known.emplace_back(row.name);
    check_leaves(expression, node, is_dtype, fmt::format("the types are {}", enumerated(known)));
    for (const ExpressionNode* leaf : leaves_of(expression)) {
        if (leaf->kind != NodeKind::name) continue;
        const Field* field = op_.field(leaf->name);
        if (field && !(field->kind == Field::Kind::choice && std::ranges::all_of(field->choices, is_dtype)))
            document_.fail_inside(node, leaf->offset, leaf->piece.size(),
                                  fmt::format("field '{}' holds no type, so it cannot be a dtype", leaf->name));
    }
}

std::string Builder::read_file(const Node& node, bool host) {
    const std::string& path = node.text();
    if (const auto objection = path_objection(path))
        document_.fail(node, fmt::format("the path '{}' {}", path, *objection));
    // The hosts' side of a built-in op is linked in, and so is that of a file that replaces one and brings none.
    const Op* replaced = host && options_.known ? options_.known(op_.name) : nullptr;
    const bool linked =
        host && (options_.builtin || (replaced && replaced->builtin && replaced->reference.cpp == path) ||
                 (options_.linked && options_.linked(path)));
    try {
        if (host && path.ends_with(".npy")) {
            if (!files_.has(path))
                document_.fail(node, fmt::format("there is no file '{}' beside {}", path, document_.name()));
            return path;
        }
        std::optional<std::string> text = files_.read(path);
        if (!text && !host && options_.shared) text = options_.shared->read(path);
        if (!text && linked) return path;
        if (!text) document_.fail(node, fmt::format("there is no file '{}' beside {}", path, document_.name()));
        add_file(path, std::move(*text), node);
    } catch (const Error& error) {
        if (std::string_view{error.what()}.starts_with(document_.name() + ":")) throw;
        document_.fail(node, error.what());
    }
    return path;
}

void Builder::add_file(const std::string& name, std::string text, const Node& node) {
    const auto [place, fresh] = op_.files.try_emplace(name, text);
    if (!fresh) {
        if (place->second != text)
            document_.fail(node, fmt::format("'{}' is also a file of op '{}', with another text; rename one of them",
                                             name, op_.name));
        return;
    }
    if (text.size() > largest_source)
        document_.fail(node, fmt::format("'{}' has {} bytes, a source at most {}", name, text.size(), largest_source));
    if (op_.files.size() > most_files)
        document_.fail(node, fmt::format("op '{}' has more than {} files", op_.name, most_files));
    add_includes(name, text, node);
}

void Builder::add_includes(const std::string& source, const std::string& text, const Node& node) {
    for (const std::string& name : quoted_includes(text)) {
        // The compiler would read it, and a change in it would change neither key nor timings that are kept.
        if (name.starts_with('/'))
            document_.fail(node, fmt::format("'{}' includes '{}'; what an op includes is in its folder", source, name));
        // What is not found here may still be a header of the toolkit; the compiler will say.
        if (path_objection(name)) continue;
        std::optional<std::string> header = files_.read(name);
        if (!header && options_.shared) header = options_.shared->read(name);
        if (header) add_file(name, std::move(*header), node);
    }
}

Op load_op(std::string_view toml_text, const FileSource& files, std::string_view name, const LoadOptions& options) {
    const Document document{toml_text, name};
    return Builder{document, files, options}.build();
}

namespace {

std::string read_toml(const fs::path& path) {
    std::ifstream file{path, std::ios::binary};
    // One byte more than is allowed is enough to see that it is too long.
    std::string text((1u << 20) + 1, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (file.bad()) throw Error{Error::Kind::usage, fmt::format("{} cannot be read", path.lexically_normal().string())};
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text;
}

std::vector<fs::path> toml_files(const fs::path& folder) {
    std::error_code error;
    std::vector<fs::path> found;
    for (fs::directory_iterator entry{folder, error}, end; !error && entry != end; entry.increment(error))
        if (entry->path().extension() == ".toml" && entry->is_regular_file(error)) found.push_back(entry->path());
    if (error == std::errc::not_a_directory)
        throw Error{Error::Kind::usage, fmt::format("'{}' is no folder", folder.string()),
                    fmt::format("give the folder that holds the op: --ops {}",
                                folder.has_parent_path() ? folder.parent_path().string() : std::string{"."})};
    if (error)
        throw Error{Error::Kind::usage,
                    fmt::format("the folder '{}' cannot be read: {}", folder.string(), error.message())};
    if (found.empty())
        throw Error{
            Error::Kind::usage,
            fmt::format("there is no .toml file in '{}'; an op is one .toml and the sources it names", folder.string()),
            "autotune new my_ops"};
    if (found.size() > most_files)
        throw Error{Error::Kind::usage, fmt::format("there are {} .toml files in '{}', at most {} are read",
                                                    found.size(), folder.string(), most_files)};
    std::ranges::sort(found);
    return found;
}

/// Whether the file adds to an op of another file; what is no op file is left to its own turn to be told.
bool extends_another(const std::string& text, const std::string& name) {
    try {
        return Document{text, name}.root().find("extends") != nullptr;
    } catch (const Error&) {
        return false;
    }
}

}  // namespace

std::vector<Op> load_op_folder(const fs::path& folder, const LoadOptions& options) {
    struct File {
        std::string name, text;
        bool extends = false;
    };
    std::vector<File> listed;
    for (const fs::path& path : toml_files(folder)) {
        File file{path.lexically_normal().string(), read_toml(path)};
        file.extends = extends_another(file.text, file.name);
        listed.push_back(std::move(file));
    }
    std::ranges::stable_partition(listed, [](const File& file) { return !file.extends; });

    std::vector<Op> ops;
    std::vector<std::string> origins;
    LoadOptions here = options;
    here.known = [&](std::string_view name) -> const Op* {
        const auto own = std::ranges::find(ops, name, &Op::name);
        if (own != ops.end()) return &*own;
        return options.known ? options.known(name) : nullptr;
    };
    const FolderFiles files{folder};
    for (const File& file : listed) {
        Op op = load_op(file.text, files, file.name, here);
        if (!op.builtin && !file.extends) op.folder = folder.string();
        const auto same = std::ranges::find(ops, op.name, &Op::name);
        if (same == ops.end()) {
            ops.push_back(std::move(op));
            origins.push_back(file.name);
        } else if (file.extends) {
            *same = std::move(op);
        } else {
            throw Error{Error::Kind::usage,
                        fmt::format("{} and {} both are op '{}'; a folder has one file an op",
                                    origins[static_cast<std::size_t>(same - ops.begin())], file.name, op.name)};
        }
    }
    return ops;
}

}  // namespace autotune
