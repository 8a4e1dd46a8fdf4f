#ifndef AUTOTUNE_LOADER_BUILDER_H
#define AUTOTUNE_LOADER_BUILDER_H

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/loader/document.h"
#include "tuner/loader/names.h"
#include "tuner/loader/op_loader.h"
#include "tuner/loader/section.h"

namespace autotune {

/// Makes an Op of one file, in two passes: first everything is read (problem_sections.cpp, kernel_sections.cpp), then
/// each expression is checked against the names, which may stand further down in the file.
class Builder {
public:
    Builder(const Document& document, const FileSource& files, const LoadOptions& options)
        : document_{document}, files_{files}, options_{options}, names_{document} {}
    Op build();

private:
    /// An expression and where it stands, for the second pass.
    struct Pending {
        Expression expression;
        const Node* node;
        Place place;
    };

    // op_loader.cpp
    void begin(const Section& top);
    void begin_extension(const Section& top);
    void finish();
    std::string read_file(const Node& node, bool host);
    void add_file(const std::string& name, std::string text, const Node& node);
    void add_includes(const std::string& source, const std::string& text, const Node& node);
    /// A literal among `words` or an expression; remembered for the check against names.
    Expression expression(const Node& node, const Place& place, std::string_view words = {});
    Expression optional_expression(const Section& section, std::string_view key, const Place& place,
                                   std::string_view words = {});
    std::vector<Expression> expressions(const Section& section, std::string_view key, const Place& place);
    Constraint constraint(const Node& node, std::string_view section, const Place& place);
    /// Each value that an expression can take and that is a literal must satisfy `fits`; else `must` says what it is.
    void check_leaves(const Expression& expression, const Node& node, const std::function<bool(const Value&)>& fits,
                      std::string_view must) const;
    void check_dtype(const Expression& expression, const Node& node) const;

    // problem_sections.cpp
    void read_problem(const Node& problem);
    void read_field(const Node& node);
    void read_choices(const Section& section, Field& field);
    void read_default(const Section& section, Field& field);
    void read_scalar(const Node& node);
    void read_tensor(const Node& node);
    Fill read_fill(const Node& node);
    void read_let(const Node& node);
    void read_work(const Node& node);
    void read_reference(const Node& node);
    void read_tolerance(const Node& node);
    void read_check(const Node& node);
    void check_tensors() const;
    void check_strides(const std::set<std::string>& parameters);
    void check_outputs() const;
    std::set<std::string> roles_of(const Tensor& tensor) const;
    const Tensor& tensor_named(const std::string& name, const Node& node) const;

    // kernel_sections.cpp
    void read_variant(const Node& node);
    void read_parameters(Variant& variant, const Node& node, std::map<std::string, Use>& local);
    Parameter read_parameter(const Variant& variant, const Node& node);
    void read_scratch(Variant& variant, const Node& node, const Place& place, std::map<std::string, Use>& local);
    void read_symbol(Variant& variant, const Node& node);
    std::vector<std::pair<std::string, Expression>> read_define(const Node& node,
                                                                const std::vector<Parameter>* parameters);
    LaunchSpec read_launch(const Node& node, std::string_view section, const Variant* variant, const Place& place);
    ArgumentSpec read_argument(const Node& node, const Place& place, bool reference);
    ArgumentSpec read_tensor_map(const Node& node, const Place& place);
    void check_argument(const Pending& argument) const;
    void check_entry(const Variant& variant, const std::string& entry, const Node& node) const;

    const Document& document_;
    const FileSource& files_;
    const LoadOptions& options_;
    Names names_;
    Op op_;
    const Op* base_ = nullptr;  ///< what the file extends
    std::deque<Variant> read_;  ///< variants of this file: places point into them, so they stay where they are
    std::vector<Pending> pending_, arguments_;
    std::vector<std::pair<std::string, Pending>> strides_;                          ///< with the tensor's name
    std::vector<std::pair<const Node*, std::string>> named_later_, outputs_later_;  ///< tensors that something names
    std::vector<std::pair<const Node*, Expression>> named_dtypes_;                  ///< of tensors and scratch
    std::map<std::string, const Node*> tensor_nodes_;
};

}  // namespace autotune
#endif
