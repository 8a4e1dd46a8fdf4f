#include "tuner/chains/chain_value.h"

#include <cmath>

#include "kernel_templates/activations.cuh"
#include "kernel_templates/bounded.cuh"
#include "kernel_templates/philox.cuh"
#include "tuner/chains/chain_text.h"

namespace autotune {
namespace {

/// The tree walked for one element.
class Walk {
public:
    explicit Walk(const ChainOperands& operands) : operands_{operands} {}

    Bounded number(const ChainNode& node) const {
        const auto part = [&](std::size_t i) { return number(node.parts[i]); };
        switch (node.step) {
            case ChainStep::number:
                return constant<Bounded>(node.number);
            case ChainStep::input:
                return {operands_.inputs[node.index], 0.0};
            case ChainStep::scalar:
                return {operands_.scalars[node.index], 0.0};
            case ChainStep::add:
                return part(0) + part(1);
            case ChainStep::subtract:
                return part(0) - part(1);
            case ChainStep::multiply:
                return part(0) * part(1);
            case ChainStep::divide:
                return part(0) / part(1);
            case ChainStep::minus:
                return -part(0);
            case ChainStep::power: {
                const Bounded x = part(0);
                Bounded result = x;
                for (std::size_t i = 1; i < node.index; ++i) result = result * x;
                return result;
            }
            case ChainStep::select:
                return select(condition(node.parts[0]), part(1), part(2));
            case ChainStep::minimum:
                return min_of(part(0), part(1));
            case ChainStep::maximum:
                return max_of(part(0), part(1));
            case ChainStep::absolute:
                return abs_of(part(0));
            case ChainStep::exp:
                return exp_of(part(0));
            case ChainStep::log:
                return log_of(part(0));
            case ChainStep::sqrt:
                return sqrt_of(part(0));
            case ChainStep::rsqrt:
                return rsqrt_of(part(0));
            case ChainStep::tanh:
                return tanh_of(part(0));
            case ChainStep::sigmoid:
                return operands_.narrow ? sigmoid<true>(part(0)) : sigmoid<false>(part(0));
            case ChainStep::relu:
                return relu(part(0));
            case ChainStep::gelu:
                return operands_.narrow ? gelu<true>(part(0)) : gelu<false>(part(0));
            case ChainStep::gelu_tanh:
                return operands_.narrow ? gelu_tanh<true>(part(0)) : gelu_tanh<false>(part(0));
            case ChainStep::silu:
                return operands_.narrow ? silu<true>(part(0)) : silu<false>(part(0));
            case ChainStep::f32:
                return as_f32(part(0));
            case ChainStep::f16:
                return as_f16(part(0));
            case ChainStep::bf16:
                return as_bf16(part(0));
            case ChainStep::dropout:
                return dropout(part(0), part(1), bits(static_cast<unsigned>(node.index)));
            default:
                return {NAN, 0.0};  // a condition: none stands where a number does
        }
    }

private:
    Truth condition(const ChainNode& node) const {
        const auto part = [&](std::size_t i) { return number(node.parts[i]); };
        switch (node.step) {
            case ChainStep::less:
                return part(0) < part(1);
            case ChainStep::less_equal:
                return part(0) <= part(1);
            case ChainStep::greater:
                return part(0) > part(1);
            case ChainStep::greater_equal:
                return part(0) >= part(1);
            case ChainStep::equal:
                return part(0) == part(1);
            case ChainStep::not_equal:
                return part(0) != part(1);
            case ChainStep::both:
                return both(condition(node.parts[0]), condition(node.parts[1]));
            case ChainStep::either:
                return either(condition(node.parts[0]), condition(node.parts[1]));
            default:
                return negated(condition(node.parts[0]));
        }
    }

    unsigned bits(unsigned use) const {
        return random_bits_of(operands_.seed, operands_.offset, use, operands_.element);
    }

    const ChainOperands& operands_;
};

}  // namespace

ChainValue value_of(const Chain& chain, const ChainOperands& operands) {
    const Bounded result = Walk{operands}.number(chain.root);
    return {result.value, result.error};
}

}  // namespace autotune
