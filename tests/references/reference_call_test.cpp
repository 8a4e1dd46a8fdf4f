#include <gtest/gtest.h>

#include <array>
#include <atomic>

#include "autotune/reference.hpp"

namespace autotune {
namespace {

/// A call with one field of each kind and no tensors.
struct Sample {
    std::array<autotune_field, 2> fields{
        {{.name = "n", .integer = 7, .real = 7.0, .text = nullptr}, {.name = "act", .text = "relu"}}};
    std::array<char, 64> message{};
    autotune_call call{.abi = AUTOTUNE_REFERENCE_ABI,
                       .threads = 4,
                       .field_count = fields.size(),
                       .fields = fields.data(),
                       .message = message.data(),
                       .message_size = message.size()};
};

TEST(ReferenceCall, GivesFieldsByNameAndRefusesWhatIsNone) {
    const Sample sample;
    const ReferenceCall call{sample.call};
    EXPECT_EQ(call.integer("n"), 7);
    EXPECT_EQ(call.text("act"), "relu");
    EXPECT_THROW(call.integer("m"), std::invalid_argument);
    EXPECT_THROW(call.tensor("x"), std::invalid_argument);
    EXPECT_THROW(call.text("n"), std::invalid_argument) << "a number was read as a text";
}

TEST(ReferenceCall, DoesEachIndexOnceOnHoweverManyThreads) {
    for (const int threads : {-1, 0, 1, 2, 7, 64}) {
        Sample sample;
        sample.call.threads = threads;
        for (const std::size_t count : {0u, 1u, 2u, 63u, 1000u}) {
            std::vector<std::atomic<int>> done(count);
            ReferenceCall{sample.call}.parallel(count, [&](std::size_t i) { ++done[i]; });
            for (const auto& times : done) EXPECT_EQ(times, 1) << threads << " threads, " << count;
        }
    }
}

TEST(ReferenceCall, AnExceptionOfAThreadBecomesAStatusAndAMessageThatFits) {
    Sample sample;
    const auto body = [](const ReferenceCall& call) {
        call.parallel(100, [](std::size_t i) {
            if (i == 77) throw std::runtime_error(std::string(200, 'x'));
        });
    };
    EXPECT_NE(run_reference(&sample.call, body), 0);
    EXPECT_EQ(std::string{sample.message.data()}, std::string(sample.message.size() - 1, 'x'));
    sample.call.abi = AUTOTUNE_REFERENCE_ABI + 1;
    EXPECT_NE(run_reference(&sample.call, [](const ReferenceCall&) {}), 0);
}

}  // namespace
}  // namespace autotune
