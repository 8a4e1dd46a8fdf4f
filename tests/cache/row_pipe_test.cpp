// Goal: rows arrive all and in order, and a failure on either side ends both with what failed.
#include "cache/sharing/row_pipe.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

namespace autotune {
namespace {

TEST(RowPipe, HandsOverEveryRowInOrder) {
    for (const std::size_t count : {0u, 1u, 2047u, 2048u, 2049u, 50'000u}) {
        std::size_t next = 0;
        RowPipe pipe{[&](std::vector<JudgedRow>& rows) {
            for (const JudgedRow& row : rows) EXPECT_EQ(row.number, next++);
        }};
        pipe.run([&] {
            for (std::size_t i = 0; i < count; ++i) pipe.push({.number = i});
            pipe.drain();
            EXPECT_EQ(next, count) << "what rows point to may go now";
        });
        EXPECT_EQ(next, count);
    }
}

TEST(RowPipe, WhatTheReaderThrowsEndsIt) {
    RowPipe pipe{[](std::vector<JudgedRow>&) {}};
    EXPECT_THROW(pipe.run([&] {
        for (std::size_t i = 0; i < 9000; ++i) pipe.push({.number = i});
        throw std::runtime_error{"the file is damaged"};
    }),
                 std::runtime_error);
}

TEST(RowPipe, WhatThePutterThrowsEndsTheReaderWhereverItIs) {
    for (const std::size_t count : {10u, 3000u, 1'000'000u}) {
        std::atomic<std::size_t> pushed = 0;
        RowPipe pipe{[](std::vector<JudgedRow>&) { throw std::out_of_range{"the disk is full"}; }};
        EXPECT_THROW(pipe.run([&] {
            for (; pushed < count; ++pushed) pipe.push({.number = pushed});
            pipe.drain();
        }),
                     std::out_of_range);
        EXPECT_LT(pushed, 100'000u);
    }
}

}  // namespace
}  // namespace autotune
