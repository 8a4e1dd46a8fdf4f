// Goal: what an op promises of tensors holds in its kernels, whichever op it is: single elements, rows that lie apart
// and start anywhere, an output that takes an input's place, elements that are no numbers. Method: a small check
// problem of every op, the default config and that of the last variant, which is for every problem; against the CPU
// reference, with all checks on.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/device/emulator/template_run.h"
#include "tuner/chains/chain_op.h"
#include "tuner/model/free_stride.h"

namespace autotune {
namespace {

using Fields = std::vector<std::pair<std::string, Value>>;

constexpr const char* part = "sm_90";

const DeviceLimits& limits() {
    static const DeviceLimits of_part = make_emulated_device(part)->identity().limits;
    return of_part;
}

/// Elements of all tensors, and work that is as much.
double size_of_problem(const Instance& instance) {
    double elements = instance.flops() / 100;
    for (const BoundTensor& tensor : instance.tensors())
        if (tensor.present) elements += static_cast<double>(tensor.elements);
    return elements;
}

/// The op's check problems from the smallest on, their type being the `turn`-th of those it takes.
std::vector<Instance> checked_problems(const Op& op, std::size_t turn) {
    std::vector<Instance> all;
    for (Fields fields : op.check_problems) {
        if (const Field* const dtype = op.field("dtype"); dtype && !dtype->choices.empty())
            fields.emplace_back("dtype", dtype->choices[turn % dtype->choices.size()]);
        all.push_back(Instance::make(op, fields, limits()));
    }
    std::ranges::stable_sort(all, {}, size_of_problem);
    return all;
}

/// The largest of at most so many elements.
std::optional<Instance> checked_problem(const Op& op, double most_elements, std::size_t turn) {
    std::vector<Instance> all = checked_problems(op, turn);
    std::erase_if(all, [&](const Instance& one) { return size_of_problem(one) > most_elements; });
    return all.empty() ? std::nullopt : std::optional{std::move(all.back())};
}

/// Every row of a tensor whose rows may lie apart a few elements behind the one before, and each start no more aligned
/// than an element is; or, where they are `unlike`, than one, two or four are, by turns.
Binding apart_and_anywhere(const Instance& instance, bool unlike) {
    Binding binding;
    int turn = 0;
    for (const BoundTensor& tensor : instance.tensors()) {
        if (!tensor.present) continue;
        const int element = static_cast<int>(size_of(tensor.dtype));
        binding.align.emplace_back(tensor.name, unlike ? std::min(8, element << turn++ % 3) : element);
        std::int64_t packed = 1;
        for (std::size_t d = tensor.spec->strides.size(); d-- > 0;) {
            std::int64_t stride = tensor.strides[d];
            if (const std::optional<std::string> name = free_stride(instance.op(), tensor.spec->strides[d]))
                binding.strides.emplace_back(*name, stride = packed + (unlike ? 8 : 3));
            packed = stride * tensor.shape[d];
        }
    }
    return binding;
}

void expect_right(const Op& op, const Fields& fields, const Binding& binding, const TemplateMemory& memory) {
    TemplateRun run{part, op, fields, binding, memory};
    std::vector<Config> configs{run.instance().default_config()};
    if (const std::optional<Config> last = run.instance().defaults_of(op.variants.back());
        last && last->variant != configs.front().variant && !run.instance().objection(*last))
        configs.push_back(*last);
    for (const Config& config : configs) {
        const Outcome outcome = run.trial(config);
        EXPECT_TRUE(outcome.ok()) << op.name << " " << run.instance().problem().text() << ": " << config.text() << ": "
                                  << info(outcome.ending).words << ": " << outcome.reason << "\n"
                                  << outcome.log;
    }
}

class EveryOp : public testing::TestWithParam<const Op*> {
protected:
    void SetUp() override {
        if (const std::string trouble = no_compiler(); !trouble.empty()) GTEST_SKIP() << trouble;
    }
};

TEST_P(EveryOp, TakesTheLeastThatItIsCheckedOn) {
    expect_right(*GetParam(), checked_problems(*GetParam(), 0).front().problem().fields, {}, {});
}

// What stands in for the CPU reference where that would take seconds says the same.
TEST_P(EveryOp, HasTheSameReferenceOnDevices) {
    for (const Instance& problem : checked_problems(*GetParam(), 2)) {
        if (size_of_problem(problem) > 6e3) break;
        TemplateRun run{part, *GetParam(), problem.problem().fields};
        ASSERT_FALSE(run.instance().reference_sources().empty()) << "its reference is the CPU's alone";
        for (const Comparison& one : run.anchor())
            EXPECT_EQ(one.bad, 0u) << problem.problem().text() << ": element " << one.first_bad << " is " << one.got
                                   << ", not " << one.want;
    }
}

TEST_P(EveryOp, TakesRowsThatLieApartAndStartAnywhere) {
    const std::optional<Instance> problem = checked_problem(*GetParam(), 3e4, 2);
    ASSERT_TRUE(problem);
    for (const bool unlike : {false, true})
        expect_right(*GetParam(), problem->problem().fields, apart_and_anywhere(*problem, unlike), {});
}

// With a NaN, an infinity and a negative one among the elements of an input, the rest of which are as ever.
TEST_P(EveryOp, GivesWhatItsReferenceSaysOfNanAndInfinities) {
    const auto is_of_floats = [](const BoundTensor& tensor) {
        return tensor.present && tensor.role != Role::out && info(tensor.dtype).floating && size_of(tensor.dtype) > 1;
    };
    std::optional<Instance> problem;
    for (std::size_t turn = 1; turn < 8 && !problem; ++turn)
        if (std::optional<Instance> of_type = checked_problem(*GetParam(), 3e3, turn);
            of_type && std::ranges::any_of(of_type->tensors(), is_of_floats))
            problem = std::move(of_type);
    ASSERT_TRUE(problem) << "no check problem of floats is small enough";
    expect_right(*GetParam(), problem->problem().fields, {}, {.specials = true});
}

const std::vector<Op>& chains() {
    static const std::vector<Op> all = [] {
        std::vector<Op> made;
        for (const char* const text :
             {"chain_of_one = gelu_tanh(x)", "chain_of_many = dropout(relu(x + bias), p) * scale",
              "chain_that_chooses = x > 0 and not x > 2 ? min(x, a) : max(x * x, -a)"})
            made.push_back(chain_op(text));
        return made;
    }();
    return all;
}

std::vector<const Op*> ops() {
    std::vector<const Op*> all;
    for (const Op& op : builtin_ops()) all.push_back(&op);
    for (const Op& op : chains()) all.push_back(&op);
    return all;
}

const auto name_of_op = [](const testing::TestParamInfo<const Op*>& one) { return one.param->name; };
INSTANTIATE_TEST_SUITE_P(All, EveryOp, testing::ValuesIn(ops()), name_of_op);

class EveryOpInPlace : public EveryOp {};

TEST_P(EveryOpInPlace, PutsItsOutputWhereItSaysItMay) {
    for (const Tensor& output : GetParam()->tensors)
        for (const std::string& over : output.may_alias) {
            std::optional<Fields> found;
            for (const Fields& fields : GetParam()->check_problems) {
                const Instance instance = Instance::make(*GetParam(), fields, limits());
                const auto tensor = [&](const std::string& name) {
                    return std::ranges::find(instance.tensors(), name, &BoundTensor::name);
                };
                const auto from = tensor(output.name), to = tensor(over);
                if (from->present && to->present && from->dtype == to->dtype && from->elements == to->elements &&
                    from->elements <= 20000)
                    found = fields;
            }
            ASSERT_TRUE(found) << "no check problem has " << output.name << " over " << over;
            expect_right(*GetParam(), *found, {}, {.output = output.name, .over = over});
        }
}

std::vector<const Op*> ops_in_place() {
    std::vector<const Op*> all = ops();
    std::erase_if(all, [](const Op* op) {
        return std::ranges::all_of(op->tensors, [](const Tensor& tensor) { return tensor.may_alias.empty(); });
    });
    return all;
}

INSTANTIATE_TEST_SUITE_P(All, EveryOpInPlace, testing::ValuesIn(ops_in_place()), name_of_op);

}  // namespace
}  // namespace autotune
