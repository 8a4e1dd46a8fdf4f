#ifndef AUTOTUNE_LOADER_NAMES_H
#define AUTOTUNE_LOADER_NAMES_H

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/loader/document.h"
#include "tuner/model/op.h"

namespace autotune {

/// What a name of an op file can stand for; bits, so that a place can say which it takes.
enum Use : unsigned {
    use_field = 1,
    use_let = 2,
    use_limit = 4,
    use_parameter = 8,
    use_scalar = 16,
    use_tensor = 32,  ///< as an argument or an array, by its bare name
    use_scratch = 64,
    use_stride = 128,  ///< a free one
    use_blocks = 256,  ///< blocks_per_sm
    use_align = 512,   ///< align(x) and contiguous(x)
    use_sum = 1024,    ///< sum(x)
};

/// Where an expression stands, and so what its names may be.
struct Place {
    std::string_view what;  ///< `a constraint`: in messages
    unsigned uses = 0;
    const std::vector<Parameter>* parameters = nullptr;  ///< those known here
    const std::vector<Scratch>* scratch = nullptr;
    std::size_t fields = static_cast<std::size_t>(-1);  ///< only the first so many
    std::vector<std::string> words = {};                ///< literals that may stand here instead
};

/// The names that one op declares, and the check of expressions against them.
class Names {
public:
    explicit Names(const Document& document) : document_{&document} {}

    /// Takes a name for the whole op. Throws Error{usage} at `node` when it is taken, a function's or a limit's.
    /// node: nullptr for what the extended op declares.
    void declare(Use use, const std::string& name, const Node* node);
    /// The same for parameters and scratch, which live in one variant only.
    void declare_local(Use use, const std::string& name, const Node& node, std::map<std::string, Use>& local) const;
    void declare_let(const std::string& name, Expression expression, const Node* node);
    /// The values that a choice may have: words compared with it must be among them.
    void declare_choices(const std::string& name, std::vector<Value> choices) { choices_[name] = std::move(choices); }
    void declare_stride(const std::string& name) { strides_.insert(name); }
    /// Whether it stands for something everywhere; tensors aside.
    bool known(const std::string& name) const;
    bool is_tensor(const std::string& name) const { return tensors_.contains(name); }

    /// All lets, sorted so that each uses only earlier ones. any_parameters: of all variants.
    /// Throws Error{usage} for a cycle, and for names that a let cannot use.
    std::vector<std::pair<std::string, Expression>> sorted_lets(const std::set<std::string>& any_parameters);

    /// Throws Error{usage} at the name that is unknown, or known and of no use at this place.
    void check(const Expression& expression, const Node& node, const Place& place) const;

private:
    struct Let {
        Expression expression;
        const Node* node = nullptr;
        int state = 0;      ///< of the walk: 0 new, 1 on the way, 2 done
        unsigned uses = 0;  ///< of the lets it uses, too
        std::set<std::string> parameters;
    };

    [[noreturn]] void refuse(Use use, const Node& node, const std::string& message) const;
    void check_free(Use use, const std::string& name, const Node& node) const;
    void walk(const std::string& name, const std::set<std::string>& any_parameters, std::vector<std::string>& path,
              std::vector<std::pair<std::string, Expression>>& sorted);
    void check_name(const std::string& name, const Expression& expression, const Node& node, const Place& place) const;
    void check_let(const std::string& name, const Expression& expression, const Node& node, const Place& place) const;
    void check_tensor_calls(const Expression& expression, const Node& node, const Place& place) const;
    void check_words(const Expression& expression, const Node& node, const Place& place) const;
    std::optional<Use> meaning(const std::string& name, const Place& place) const;
    const std::vector<Value>* choices_of(const std::string& name, const Place& place) const;
    [[noreturn]] void unknown(const std::string& name, const Expression& expression, const Node& node,
                              const Place& place) const;

    const Document* document_;
    std::map<std::string, Use> global_;  ///< all but tensors, which may share a field's name
    std::set<std::string> tensors_, strides_;
    std::vector<std::string> fields_;
    std::map<std::string, std::vector<Value>> choices_;
    std::vector<std::string> let_order_;
    std::map<std::string, Let> lets_;
};

/// The sub-expressions that can be an expression's value: those of a conditional's two sides, else the whole.
std::vector<const struct ExpressionNode*> leaves_of(const Expression& expression);

}  // namespace autotune
#endif
