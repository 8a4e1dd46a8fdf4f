// cross_entropy: what a row's loss and gradients are made of
#ifndef AUTOTUNE_CROSS_ENTROPY_CUH
#define AUTOTUNE_CROSS_ENTROPY_CUH

#include "rows.cuh"

constexpr float not_a_number = __builtin_bit_cast(float, 0x7fffffffu);

/// A row's label, of type Label, and its logit.
template <class T, class Label>
struct Target {
    long long label;
    bool ignored, wrong;
    T logit;  // the label's, as loaded: a conversion would wait for it
    __device__ __forceinline__ Target(const T* x, Label label_, int cols, long long ignore)
        : label{label_},
          ignored{label == ignore},
          wrong{!ignored && (label < 0 || label >= cols)},
          logit{from_float<T>(0.0f)} {
        if (!ignored && !wrong) logit = x[label];
    }
    __device__ __forceinline__ float loss(const MaxSumTotal& all, int cols, float smoothing) const {
        if (ignored) return 0.0f;
        if (wrong) return not_a_number;
        const float lse = logf(all.exps.sum), max = pivot(all.exps.max);
        // Without smoothing the mean has no part, even where it is infinite.
        const float smooth = smoothing == 0.0f ? 0.0f : smoothing * (all.total / static_cast<float>(cols) - max);
        return lse - (1.0f - smoothing) * (to_float(logit) - max) - smooth;
    }
};

/// d loss / d logit, times scale: scale * softmax - everywhere, and at_label where the label is. Of an ignored row all
/// are 0.
struct RowGradient {
    ExpBelow below;
    float share = 0.0f, everywhere = 0.0f;
    const bool ignored;
    int label = -1;  // its column, if it has one
    float at_label = 0.0f;

    template <class T, class Label>
    __device__ __forceinline__ RowGradient(const Target<T, Label>& target, const MaxSumTotal& all, int cols,
                                           float smoothing, float scale)
        : below{all.exps.max}, ignored{target.ignored} {
        if (ignored) return;
        share = target.wrong ? not_a_number : scale / all.exps.sum * below.correction;
        if (smoothing != 0.0f) everywhere = scale * smoothing / static_cast<float>(cols);
        if (target.wrong) return;
        label = static_cast<int>(target.label);
        at_label = of(to_float(target.logit)) - scale * (1.0f - smoothing);
    }
    /// Of a row that is not ignored.
    __device__ __forceinline__ float of(float logit) const { return fmaf(below.of(logit), share, -everywhere); }
};

#endif
