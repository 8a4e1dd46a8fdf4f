#include "tuner/worker/junk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "autotune/error.h"
#include "device/occupancy.h"
#include "tests/support/test_data.h"
#include "tuner/loader/op_loader.h"
#include "tuner/worker/evaluate.h"

namespace autotune {
namespace {

using testing::HasSubstr;

Op paged_attention() {
    for (Op& op : load_op_folder(test_data("loader/ops")))
        if (op.name == "paged_attention") return op;
    throw std::logic_error{"the folder has no paged_attention"};
}

Instance small(const Op& op) {
    return Instance::make(op, {{"batch", std::int64_t{5}}, {"blocks", std::int64_t{8}}, {"pool", std::int64_t{64}}},
                          *limits_of_capability(90));
}

template <class T>
std::vector<T> numbers(std::span<const std::byte> bytes) {
    std::vector<T> all(bytes.size() / sizeof(T));
    std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
}

const TensorTask& task_of(const std::vector<TensorTask>& tasks, std::string_view name) {
    return *std::ranges::find(tasks, name, &TensorTask::name);
}

TEST(Junk, BeginsWhereEachRowsOwnLengthSays) {
    const Op op = paged_attention();
    const Instance instance = small(op);
    std::vector<TensorTask> tasks = tensor_tasks(instance, 3);
    const auto lens = numbers<std::int32_t>(filled_bytes(task_of(tasks, "lens"), 1));
    const auto clean = numbers<std::int32_t>(filled_bytes(task_of(tasks, "pages"), 1));
    const std::vector<Fd> contents = junk_contents(instance, tasks);
    ASSERT_EQ(contents.size(), 1u);
    EXPECT_EQ(task_of(tasks, "pages").contents, 0);
    EXPECT_EQ(task_of(tasks, "keys").contents, -1);
    const MappedMemory memory{contents[0], 1 << 20};
    const auto pages = numbers<std::int32_t>(memory.bytes());
    ASSERT_EQ(pages.size(), 40u);
    for (std::size_t i = 0; i < pages.size(); ++i) {
        const bool junk = static_cast<int>(i % 8) >= (lens[i / 8] + 15) / 16;
        EXPECT_EQ(pages[i], junk ? 0x7F7F7F7F : clean[i]) << "page " << i % 8 << " of a sequence of " << lens[i / 8];
    }
}

TEST(Junk, IsNanInFloatsAndMayBeginAtAPlainNumber) {
    Op op = paged_attention();
    for (Tensor& tensor : op.tensors)
        if (tensor.name == "q") tensor.fill.junk_beyond = Expression::parse("head_dim - 2");
    const Instance instance = small(op);
    std::vector<TensorTask> tasks = tensor_tasks(instance, 3);
    const std::vector<Fd> contents = junk_contents(instance, tasks);
    ASSERT_EQ(contents.size(), 2u);
    const MappedMemory memory{contents[static_cast<std::size_t>(task_of(tasks, "q").contents)], 1 << 20};
    const auto q = numbers<std::uint16_t>(memory.bytes());
    for (std::size_t i = 0; i < q.size(); ++i) EXPECT_EQ(q[i] == 0xFFFF, i % 128 >= 126) << i;
}

TEST(Junk, AnInputThatDoesNotFitTheRowsIsAnErrorThatNamesBoth) {
    Op op = paged_attention();
    for (Tensor& tensor : op.tensors)
        if (tensor.name == "pages") tensor.fill.junk_beyond = Expression::parse("keys");
    const Instance instance = small(op);
    std::vector<TensorTask> tasks = tensor_tasks(instance, 3);
    try {
        junk_contents(instance, tasks);
        FAIL() << "it was filled";
    } catch (const Error& e) {
        EXPECT_THAT(e.what(), HasSubstr("junk_beyond of 'pages' names 'keys'"));
    }
}

}  // namespace
}  // namespace autotune
