/// elementwise: y = a chain of steps on elements, as the field `chain` says, and how far a correct float kernel may be.
///
/// The chain is evaluated in double. Each step takes the errors of its operands on and adds its own
/// (kernel_templates/bounded.cuh); the magnitude is their sum in units of 2^-24, which is what the tolerance multiplies
/// it with. An input of extent 1 stands for all.
#include <autotune/reference.hpp>

#include "tuner/chains/chain.h"
#include "tuner/chains/chain_value.h"

namespace {

/// An input's elements, with 0 as the step of a dimension in which it has one.
struct Input {
    std::vector<double> elements;
    std::size_t batch_step, row_step, col_step;

    Input(const autotune::ReferenceCall& call, const std::string& name) : elements{call.doubles(name)} {
        const autotune_tensor_view& view = call.tensor(name);
        const auto cols = static_cast<std::size_t>(view.shape[2]), rows = static_cast<std::size_t>(view.shape[1]);
        col_step = cols == 1 ? 0 : 1;
        row_step = rows == 1 ? 0 : cols;
        batch_step = view.shape[0] == 1 ? 0 : rows * cols;
    }
};

}  // namespace

AUTOTUNE_REFERENCE(elementwise) {
    const autotune::Chain chain = autotune::Chain::parse(call.text("chain"));
    const auto batch = static_cast<std::size_t>(call.integer("batch")),
               rows = static_cast<std::size_t>(call.integer("rows")),
               cols = static_cast<std::size_t>(call.integer("cols"));
    std::vector<Input> inputs;
    for (const std::string& name : chain.inputs) inputs.emplace_back(call, name);
    std::vector<double> scalars;
    for (const std::string& name : chain.scalars) scalars.push_back(call.real(name));
    const bool random = chain.dropouts > 0;
    const std::int64_t seed = random ? call.integer("seed") : 0;
    const auto offset = static_cast<std::uint32_t>(random ? call.integer("offset") : 0);
    const bool narrow = call.tensor("y").dtype != AUTOTUNE_F32;
    autotune::Output y = call.output("y");
    call.parallel(batch * rows, [&](std::size_t outer) {
        std::vector<double> at(inputs.size());
        for (std::size_t c = 0; c < cols; ++c) {
            const std::size_t element = outer * cols + c;
            for (std::size_t i = 0; i < inputs.size(); ++i) {
                const Input& in = inputs[i];
                at[i] = in.elements[outer / rows * in.batch_step + outer % rows * in.row_step + c * in.col_step];
            }
            const autotune::ChainValue value = autotune::value_of(chain, {.inputs = at,
                                                                          .scalars = scalars,
                                                                          .seed = seed,
                                                                          .offset = offset,
                                                                          .element = element,
                                                                          .narrow = narrow});
            y.set(element, value.value, value.error * 0x1p24);
        }
    });
}
