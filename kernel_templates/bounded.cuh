// bounded: a number in double beside how far a float computation of the same steps may be from it
//
// For references, on the device and on the CPU. Each step takes the errors of its operands on and adds its own: half a
// unit for + - * / and square roots, those of the CUDA C++ Programming Guide's table for the functions of math.h.
// A value that a float cannot hold is infinite, as it is there. Where the float may be anything (a comparison of
// numbers that may be equal, 0 / 0 within the errors) the error is infinite, or as large as the two sides differ.
#ifndef AUTOTUNE_BOUNDED_CUH
#define AUTOTUNE_BOUNDED_CUH

#include "activations.cuh"

struct Bounded {
    double value, error;
};

/// Whether a comparison holds, and whether floats agree on that.
struct Truth {
    bool value, sure;
};

__device__ __forceinline__ double infinite() { return 1e308 * 10.0; }

/// Rounded to a type with a relative error of `unit` at most and half a spacing of `least` near 0, which holds nothing
/// from `limit` on.
__device__ __forceinline__ Bounded rounded(Bounded x, double unit, double least, double limit) {
    const double size = fabs(x.value);
    if (!(size <= 1.7976931348623157e308)) return x;  // infinite, or NaN
    if (size - x.error >= limit) return {x.value < 0 ? -infinite() : infinite(), 0.0};
    if (size + x.error >= limit) return {x.value, infinite()};
    return {x.value, x.error + unit * (size + x.error) + least};
}
__device__ __forceinline__ Bounded as_float(Bounded x) { return rounded(x, 0x1p-24, 0x1p-150, 0x1.ffffffp127); }
/// With a relative error of `units` times 2^-24 instead.
__device__ __forceinline__ Bounded as_float(Bounded x, double units) {
    return rounded(x, units * 0x1p-24, units * 0x1p-150, 0x1.ffffffp127);
}

template <>
__device__ __forceinline__ Bounded constant<Bounded>(double value) {
    return {value, static_cast<double>(static_cast<float>(value)) == value ? 0.0 : fabs(value) * 0x1p-24};
}

/// An operand that is infinite or NaN decides alone, unless the other's sign is not sure.
__device__ __forceinline__ Bounded special(double value, Bounded a, Bounded b) {
    const bool sure = (a.error == 0.0 || a.error < fabs(a.value)) && (b.error == 0.0 || b.error < fabs(b.value));
    return {value, sure ? 0.0 : infinite()};
}
__device__ __forceinline__ bool is_finite(Bounded x) { return fabs(x.value) <= 1.7976931348623157e308; }

__device__ __forceinline__ Bounded operator-(Bounded a) { return {-a.value, a.error}; }
__device__ __forceinline__ Bounded operator+(Bounded a, Bounded b) {
    if (!is_finite(a) || !is_finite(b)) return special(a.value + b.value, a, b);
    return as_float({a.value + b.value, a.error + b.error});
}
__device__ __forceinline__ Bounded operator-(Bounded a, Bounded b) { return a + -b; }
__device__ __forceinline__ Bounded operator*(Bounded a, Bounded b) {
    if (!is_finite(a) || !is_finite(b)) return special(a.value * b.value, a, b);
    return as_float({a.value * b.value, fabs(a.value) * b.error + fabs(b.value) * a.error + a.error * b.error});
}
__device__ __forceinline__ Bounded operator/(Bounded a, Bounded b) {
    if (!is_finite(a) || !is_finite(b)) return special(a.value / b.value, a, b);
    const double value = a.value / b.value, least = fabs(b.value) - b.error;
    if (b.value == 0.0 && b.error == 0.0) return special(value, a, b);
    if (!(least > 0.0)) return {value, infinite()};
    return as_float({value, (a.error + fabs(value) * b.error) / least});
}

__device__ __forceinline__ Truth surely(bool value, Bounded a, Bounded b) {
    return {value, (a.error == 0.0 && b.error == 0.0) || fabs(a.value - b.value) > a.error + b.error};
}
__device__ __forceinline__ Truth operator<(Bounded a, Bounded b) { return surely(a.value < b.value, a, b); }
__device__ __forceinline__ Truth operator<=(Bounded a, Bounded b) { return surely(a.value <= b.value, a, b); }
__device__ __forceinline__ Truth operator>(Bounded a, Bounded b) { return surely(a.value > b.value, a, b); }
__device__ __forceinline__ Truth operator>=(Bounded a, Bounded b) { return surely(a.value >= b.value, a, b); }
__device__ __forceinline__ Truth operator==(Bounded a, Bounded b) { return surely(a.value == b.value, a, b); }
__device__ __forceinline__ Truth operator!=(Bounded a, Bounded b) { return surely(a.value != b.value, a, b); }
__device__ __forceinline__ Truth both(Truth a, Truth b) {
    return {a.value && b.value, (a.sure && b.sure) || (a.sure && !a.value) || (b.sure && !b.value)};
}
__device__ __forceinline__ Truth either(Truth a, Truth b) {
    return {a.value || b.value, (a.sure && b.sure) || (a.sure && a.value) || (b.sure && b.value)};
}
__device__ __forceinline__ Truth negated(Truth a) { return {!a.value, a.sure}; }

__device__ __forceinline__ Bounded select(Truth which, Bounded yes, Bounded no) {
    const Bounded taken = which.value ? yes : no, other = which.value ? no : yes;
    if (which.sure) return taken;
    return {taken.value, fmax(taken.error, fabs(taken.value - other.value) + other.error)};
}

__device__ __forceinline__ Bounded abs_of(Bounded a) { return {fabs(a.value), a.error}; }
/// NaN where either is. The one that is surely less has no part in the error.
__device__ __forceinline__ Bounded max_of(Bounded a, Bounded b) {
    const double value = a.value > b.value || a.value != a.value ? a.value : b.value;
    if (fabs(a.value - b.value) > a.error + b.error) return {value, a.value > b.value ? a.error : b.error};
    return {value, fmax(a.error, b.error)};
}
__device__ __forceinline__ Bounded min_of(Bounded a, Bounded b) { return -max_of(-a, -b); }

__device__ __forceinline__ Bounded exp_of(Bounded a) {
    const double value = exp(a.value);
    return as_float({value, a.error == 0.0 ? 0.0 : value * expm1(a.error)}, 4.0);
}
__device__ __forceinline__ Bounded log_of(Bounded a) {
    const double value = log(a.value);
    if (a.error == 0.0) return as_float({value, 0.0}, 4.0);
    return as_float({value, a.error < a.value ? -log1p(-a.error / a.value) : infinite()}, 4.0);
}
__device__ __forceinline__ Bounded sqrt_of(Bounded a) {
    const double value = sqrt(a.value);
    if (a.error == 0.0) return as_float({value, 0.0});
    return as_float({value, a.error < a.value ? value - sqrt(a.value - a.error) : infinite()});
}
__device__ __forceinline__ Bounded rsqrt_of(Bounded a) {
    const double value = 1.0 / sqrt(a.value);
    if (a.error == 0.0) return as_float({value, 0.0}, 4.0);
    return as_float({value, a.error < a.value ? 1.0 / sqrt(a.value - a.error) - value : infinite()}, 4.0);
}
/// The slope is 2 / sqrt(pi) at most.
__device__ __forceinline__ Bounded erf_of(Bounded a) {
    return as_float({erf(a.value), a.error == 0.0 ? 0.0 : fmin(1.13 * a.error, 2.0)}, 4.0);
}
__device__ __forceinline__ Bounded tanh_of(Bounded a) {
    return as_float({tanh(a.value), a.error == 0.0 ? 0.0 : fmin(a.error, 2.0)}, 4.0);
}

/// By the odds, which an error of the argument multiplies.
__device__ __forceinline__ Bounded logistic_of(Bounded a) {
    const double value = 1.0 / (1.0 + exp(-a.value)), rest = value * (1.0 / (1.0 + exp(a.value)));
    const double off = a.error + fabs(a.value) * 0x1p-23 + 0x1p-22;
    const double error = rest > 0.0 ? rest * expm1(off) : a.error == 0.0 || a.error < 0.5 * fabs(a.value) ? 0.0 : 1.0;
    return as_float({value, 0x1p-126 + (error < 1.0 ? error : 1.0)}, 4.0);
}
/// By the density, which is largest at the end of the error that is nearer to 0.
__device__ __forceinline__ Bounded normal_of(Bounded a) {
    const double size = fabs(a.value), beyond = 0.5 * erfc(size * 0.70710678118654752);
    const double value = a.value < 0.0 ? beyond : a.value >= 0.0 ? 1.0 - beyond : a.value;
    const double nearest = a.error < size ? size - a.error : 0.0;
    const double slope = a.error == 0.0 ? 0.0 : a.error * 0.3989422804014327 * exp(-0.5 * nearest * nearest);
    const double own = beyond > 0.0 ? beyond * (1.0 + size * size) * 0x1p-18 : 0.0;
    return as_float({value, 0x1p-126 + own + (slope < 1.0 ? slope : 1.0)}, 1.0);
}

__device__ __forceinline__ Bounded inverse_of(Bounded a) {
    const Bounded inverse = Bounded{1.0, 0.0} / a;
    return {inverse.value, inverse.error + fabs(inverse.value) * 0x1p-23};
}

__device__ __forceinline__ bool dropped(Bounded p, unsigned bits) { return dropped(static_cast<float>(p.value), bits); }

__device__ __forceinline__ Bounded as_f32(Bounded a) { return a; }
__device__ __forceinline__ Bounded as_f16(Bounded a) { return rounded(a, 0x1p-11, 0x1p-25, 65520.0); }
__device__ __forceinline__ Bounded as_bf16(Bounded a) { return rounded(a, 0x1p-8, 0x1p-134, 0x1.ffp127); }

#endif
