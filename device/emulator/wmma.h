#ifndef AUTOTUNE_DEVICE_EMULATOR_WMMA_H
#define AUTOTUNE_DEVICE_EMULATOR_WMMA_H

#include <cstdint>

#include "device/emulator/warp.h"

namespace autotune::emulator {

/// A wmma instruction. How a fragment lies in registers is nobody's business: here element e of a matrix, counted row
/// by row, is number e modulo the matrix's elements among all slots of all lanes, lane after lane; where a fragment has
/// more slots than its matrix has elements, all copies hold the same.
struct WmmaForm {
    int m = 0, n = 0, k = 0;
    char which = 'd';              ///< of a load or store
    bool column = false;           ///< column-major in memory
    PtxType type = PtxType::none;  ///< of the elements; of mma: of d
    PtxType a = PtxType::none, b = PtxType::none, c = PtxType::none;
    int registers = 0, a_registers = 0, b_registers = 0, c_registers = 0;
};
inline constexpr int wmma_numbers = 13;  ///< in Program::extra, before the rows

bool wmma_type(PtxType type) noexcept;
/// Whether fragments of that many registers hold the matrices.
bool wmma_fits(const WmmaForm& form) noexcept;

/// a: address, imm: its offset, c: the stride in elements.
void wmma_load(Warp& warp, const Op& op, std::uint32_t mask);
void wmma_store(Warp& warp, const Op& op, std::uint32_t mask);
/// extra: d, a, b, c.
void wmma_multiply(Warp& warp, const Op& op, std::uint32_t mask);

}  // namespace autotune::emulator
#endif
