#ifndef AUTOTUNE_DEVICE_EMULATOR_DECODE_PARTS_H
#define AUTOTUNE_DEVICE_EMULATOR_DECODE_PARTS_H

#include "device/emulator/decoder.h"
#include "device/emulator/modifiers.h"

namespace autotune::emulator {

// Decoders of families of instructions, each with the opcode's modifiers; they throw Refused.

void decode_convert(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_move(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_cvta(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_isspacep(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_load(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_store(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_atomic(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_copy(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_matrix(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_mma(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_wmma(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_cluster_address(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
/// mbarrier.
void decode_phase(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
/// cp.async.mbarrier.arrive, less what stands before `arrive`.
void decode_async_arrive(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
/// cp.async.bulk and cp.reduce.async.bulk, less `async` and `bulk`.
void decode_bulk(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_wgmma(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_branch(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_barrier(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
void decode_collective(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);
/// What has no effect on results: fences, prefetches, hints.
void decode_nothing(Decoder& decoder, const Instruction& instruction, Op op, Modifiers& modifiers);

/// Bits without a type, as many bytes of them.
constexpr PtxType word_of(int bytes) noexcept {
    return bytes == 8 ? PtxType::b64 : bytes == 4 ? PtxType::b32 : PtxType::b16;
}

}  // namespace autotune::emulator
#endif
