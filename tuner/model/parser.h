#ifndef AUTOTUNE_MODEL_PARSER_H
#define AUTOTUNE_MODEL_PARSER_H

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/model/evaluator.h"

// Inside of tuner/model: from text to tree.

namespace autotune {

/// The nodes' pieces are views into `text`, so a tree stays where it was made.
struct ExpressionTree {
    std::string text;
    std::vector<std::string> names, tensors;
    std::shared_ptr<const ExpressionNode> root;
};

inline constexpr std::size_t expression_bytes_at_most = 4096;
inline constexpr std::uint32_t expression_depth_at_most = 100;

/// Throws ParseError. known: the functions that there are.
std::shared_ptr<const ExpressionTree> parse_tree(std::string_view text,
                                                 std::span<const FunctionInfo> known = functions());
std::shared_ptr<const ExpressionTree> constant_tree(Value value);

}  // namespace autotune
#endif
