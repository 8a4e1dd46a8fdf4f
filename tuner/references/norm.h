#ifndef AUTOTUNE_REFERENCES_NORM_H
#define AUTOTUNE_REFERENCES_NORM_H

// What layernorm and rmsnorm are held against, forwards and backwards: a rmsnorm is a layernorm that takes the mean as
// 0.

#include <autotune/reference.hpp>

namespace autotune {

/// What a row is taken to lie around.
enum class Centre { mean, zero };

/// y = (h - mean) * rstd * (weight + offset) (+ bias), with h = x (+ residual) and
/// rstd = 1 / sqrt(mean((h - mean)^2) + eps); quantised, y / scale with scale = max |y| / limit a row.
///
/// The magnitudes are bounds of the errors without the last rounding, in units of 2^-23. A mean of n terms is off by up
/// to 1 + sqrt(n) of them times the terms' mean magnitude, rstd by half as much as the mean square, relative, and h
/// itself by its rounding to the stored type where there is a residual. An int8 is off by half a step more.
void norm(const ReferenceCall& call, Centre centre);

/// With xhat = (x - mean) * rstd and g = dy * (weight + offset),
///     dx = rstd * (g - mean_k(g) - xhat * mean_k(g * xhat)) (+ dh), without mean_k(g) where the mean is taken as 0
///     dweight = sum of dy * xhat over rows, dbias = sum of dy
///
/// Mean and rstd are an input, as the forward pass left them. The magnitudes are bounds of the errors without the last
/// rounding, in units of 2^-23: a sum of n terms is off by up to 3 + sqrt(n) of them times the terms' magnitudes.
void norm_backward(const ReferenceCall& call, Centre centre);

}  // namespace autotune
#endif
